# SPDX-License-Identifier: Apache-2.0
"""What comes from elsewhere reaches the terminal harmlessly, outputs do not replace inputs, secrets stay out of reports."""

import html
import json
import os
import random
import sys
import unicodedata
import urllib.parse

import pytest
from command import FAKES, HERE, TONNAGE

NASTY = ["\x1b]0;pwn\x07", "\x1b[2J", "\x7f", "\x00"[:0] + "\x08\r", "\x85", "\x9b31m", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b",
         "\u2028", "\u2029", "\ufeff"]  # fmt: skip
BYTES = [b"\x9b2J", b"\xff\xfe", b"\xc2", b"\xe2\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\x9b"]


def assert_harmless(data):
    text = data.decode("utf-8")  # all of it is UTF-8
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t"}
    assert not bad, (bad, text[:400])


def call(tonnage, *words, stdin=b""):
    import subprocess

    return subprocess.run([os.fsencode(TONNAGE), *[w if isinstance(w, bytes) else os.fsencode(w) for w in words]], input=stdin,
                          env=tonnage.env, cwd=tonnage.cwd, capture_output=True, timeout=60)  # fmt: skip


@pytest.mark.parametrize("part", [n.encode("utf-8", "surrogateescape") for n in NASTY] + BYTES)
def test_no_road_to_the_terminal(tonnage, part):
    """Names of files, options, programs and cards; content of JSON, of a broken one, of a text to explain."""
    name = part.replace(b"/", b"")
    (tonnage.cwd / "broken.json").write_bytes(b'{"schema": ' + part + b"}")
    (tonnage.cwd / "other.json").write_bytes(b'{"schema": "' + part.replace(b"\x1b", b"\\u001b").replace(b"\x07", b"\\u0007").replace(b"\x08\r", b"\\b\\r") + b'"}')
    error = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" + part + b". GPU 0 has a total capacity of 7.63 GiB of which 1.00 GiB is free.\n"
    calls = [(b"report", b"broken.json"), (b"report", b"other.json"), (b"report", name), (b"run", b"--gpu", name, b"--", b"true"),
             (b"run", b"--" + name), (b"run", b"--json", name + b"/x/y", b"--", b"true"), (b"run", b"--", name), (b"fix", b"--margin", name, b"--", b"true"),
             (b"fit", b"--" + name, b"--", b"true"), (b"gpus", name), (b"explain", name), (name,), (b"validate", b"--gpu", name, b"/bin/true")]  # fmt: skip
    for words in calls:
        done = call(tonnage, *words)
        assert done.returncode != 0 and done.stderr.startswith(b"tonnage: "), words
        assert_harmless(done.stdout + done.stderr)
    for options in ((), ("--json",)):
        assert_harmless(call(tonnage, "explain", *options, stdin=error).stdout)


def test_random_bytes(tonnage):
    """A property, over names and documents: whatever goes in, nothing that a terminal obeys comes out."""
    seed = random.Random(19)
    for _ in range(40):
        junk = bytes(seed.choice([0x1B, 0x9B, 0xC2, 0xE2, 0x80, 0xAE, 0x85, 0x07, 0x22, 0x7F, 0xF0, 0xFF, 0x41]) for _ in range(seed.randrange(1, 40)))
        (tonnage.cwd / "x.json").write_bytes(b'{"schema": "' + junk)
        for words in ((b"report", b"x.json"), (b"report", junk), (b"explain", b"--" + junk)):
            done = call(tonnage, *words)
            assert_harmless(done.stdout + done.stderr)
        assert_harmless(call(tonnage, "explain", stdin=b"CUDA out of memory. " + junk + b" Tried to allocate 20 MiB\n").stdout)


def test_what_a_program_says_is_harmless_in_the_report(tonnage):
    words = "".join(NASTY)
    done = tonnage("run", "--gpu", "t4", "--json", "-", "--", sys.executable, "-c", "pass", words.replace("\x00", ""))
    assert_harmless(done.stdout.encode() + done.stderr.encode())


# ---- outputs ----


@pytest.mark.parametrize("command", ["run", "fix", "fit"])
@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("road", ["script", "link", "hard", "value", "absolute"])
def test_an_output_does_not_replace_what_the_command_line_names(tonnage, command, option, road):
    script, config = tonnage.cwd / "train.py", tonnage.cwd / "config.yaml"
    script.write_text("print(1)\n")
    config.write_text("a: 1\n")
    os.symlink("train.py", tonnage.cwd / "link")
    os.link(script, tonnage.cwd / "hard")
    path = {"script": "train.py", "link": "link", "hard": "hard", "value": "config.yaml", "absolute": str(script)}[road]
    done = tonnage(command, "--gpu", "t4", option, path, "--", sys.executable, "train.py", "--config=config.yaml")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "would write over" in done.stderr
    assert script.read_text() == "print(1)\n" and config.read_text() == "a: 1\n"


@pytest.mark.parametrize("options", [("run", "--snapshot"), ("run", "--write-baseline"), ("fix", "--patch")])
def test_other_outputs_do_not_either(tonnage, options):
    (tonnage.cwd / "train.py").write_text("print(1)\n")
    done = tonnage(options[0], options[1], "train.py", "--", sys.executable, "train.py")
    assert done.returncode == 2 and (tonnage.cwd / "train.py").read_text() == "print(1)\n"


def test_two_outputs_are_two_files(tonnage):
    done = tonnage("run", "--json", "out", "--html", "./out", "--", "true")
    assert done.returncode == 2 and "name the same file" in done.stderr and not (tonnage.cwd / "out").exists()


def test_report_and_explain_keep_their_input(tonnage):
    (tonnage.cwd / "in").write_text("{}")
    for words in (("report", "--json", "in", "in"), ("report", "--html", "./in", "in"), ("explain", "in", "--json", "in")):
        done = tonnage(*words)
        assert done.returncode == 2 and (tonnage.cwd / "in").read_text() == "{}", words


def test_devices_take_any_output(tonnage):
    assert tonnage("run", "--gpu", "t4", "--json", "/dev/null", "--html", "/dev/null", "--", "true").returncode in (0, 12)


# ---- secrets ----

SECRETS = {
    "--token=geheim": "--token=***", "--hf-token=geheim": "--hf-token=***", "WANDB_API_KEY=geheim": "WANDB_API_KEY=***",
    "--x=hf_abcdefghijklmnopqrstuvwxyz": "--x=***", "https://me:geheim@host/a": "https://me:***@host/a",
    "sk-abcdefghijklmnopqrstuvwxyz0123": "***", "train --password geheim --lr 1": "train --password *** --lr 1",
}  # fmt: skip
HARMLESS = ["--max-tokens=512", "--token-limit=5", "--pad-token=<pad>", "--tokenizer=gpt2", "--max_token=5", "--use-auth=true", "https://host:80/a@b",
            "--seed=7", "task-1", "--lr=1e-4"]  # fmt: skip


def test_secrets_are_masked_in_every_report(tonnage):
    page, report = tonnage.cwd / "r.html", tonnage.cwd / "r.json"
    words = [*SECRETS, *HARMLESS, "--api-key", "geheim", "--secret", "geheim two"]
    done = tonnage("run", "--gpu", "t4", "--json", report, "--html", page, "--", sys.executable, "-c", "pass", *words)
    command = json.loads(report.read_text())["program"]["command"]
    for text in (done.stderr, command, page.read_text()):
        assert "geheim" not in text and "abcdefghij" not in text
    for word in [*SECRETS.values(), *HARMLESS]:
        assert word in command


# Where a secret stands in how the program is called, and what the program then says of it.
SOURCES = {
    "an option": (["--api-key=%s"], {}), "the word behind an option": (["--password", "%s"], {}), "a URL": (["https://me:%s@host/"], {}),
    "the environment": ([], {"SERVICE_API_KEY": "%s"}), "a token of the environment": ([], {"HF_TOKEN": "%s"}),
    "a URL of the environment": ([], {"DATABASE": "postgres://me:%s@host/"}), "a line for a shell": (["train --secret-key %s --lr 1"], {}),
}  # fmt: skip
VALUES = ["geheim-{}&<x>", "correct{}/horse", 'a"b\'c-{}geheim', "ümlaut-{}geheim", "hf_" + "a{0}" * 12]  # each source has a number


def with_forms(value):
    """A secret as the writers may spell it: plain, in JSON, in HTML, in a shell's quotes."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value), html.escape(value, quote=False)}


def placed(value):
    """The secret of each source, the words and the environment that have them all."""
    secrets, words, environment = [], [], {}
    for number, (source, (more, variables)) in enumerate(SOURCES.items()):
        secret = value.format(number)
        secret = urllib.parse.quote(secret, safe="") if "URL" in source else secret
        secrets.append(secret)
        words += [word.replace("%s", secret) for word in more]
        environment.update({name: text % secret for name, text in variables.items()})
    return secrets, words, environment


@pytest.mark.parametrize("value", VALUES)
def test_no_writer_of_any_command_shows_a_secret(tonnage, value):
    """Whatever a program says of its secrets (its exception, its out-of-memory, a name of its own) is masked by every writer."""
    secrets, words, environment = placed(value)
    tonnage.env.update(environment)
    wish = {"base": 13000, "batch": 8, "possible": []}
    program = [*FAKES, str(HERE / "fake_program.py"), json.dumps(wish), "8"]
    message = "; ".join("no access with %s at all" % secret for secret in secrets)
    document = {"exception": {"type": "PermissionError", "message": message, "at": None},
                "steps": {"stopped": None, "seen": 1, "not_seen": ["the part of %s" % secret for secret in secrets]}}
    fake = tonnage.cwd / "says.py"
    fake.write_text("import json, sys; sys.path.insert(0, %r); import fake_guest\n"
                    "sys.argv[1:] = [%r]; fake_guest.main()\n" % (str(HERE), json.dumps({"document": document, "exit": 3})))  # fmt: skip
    outputs = [("run", [*FAKES, str(fake)], ["--json", "r.json", "--html", "r.html"]),
               ("fix", program, ["--json", "f.json", "--html", "f.html", "--patch", "f.diff"]),
               ("fit", program, ["--json", "t.json", "--html", "t.html"])]
    forms = set().union(*map(with_forms, secrets))
    for command, words_of, options in outputs:
        done = tonnage(command, "--gpu", "rtx3060", *options, "--", *words_of, *words, timeout=120)
        texts = {"terminal": done.stdout + done.stderr}
        texts.update({path.name: path.read_text() for path in tonnage.cwd.iterdir() if path.suffix in (".json", ".html", ".diff")})
        for name, text in texts.items():
            assert not [form for form in forms if form in text], (command, name)
        if command == "run":
            assert " ".join(done.stderr.split()).count("no access with *** at all") == len(secrets), done.stderr
