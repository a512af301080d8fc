# SPDX-License-Identifier: Apache-2.0
"""Completion as somebody at a keyboard has it: real shells at a terminal of their own are typed at, and the words that they come to
are read. What is offered is what the commands take."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest
from command import ROOT, TONNAGE

MANUALS = ROOT / "doc/man"
END = "the-end-of-it"
SHELLS = ["bash", "zsh", "fish"]


def script_of(shell):
    done = subprocess.run([TONNAGE, "completion", shell], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


def need(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell.upper()} IS MISSING: its completion is not tested (tools/deps test)")


class Terminal:
    """A shell at a terminal; `tonnage` and its like are functions that say which words they were given."""

    def __init__(self, words, folder, setup):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8", "PS1": "$ "}
            os.execvpe(words[0], words, environment)
        self.write(setup)

    def write(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, mark, seconds=30):
        seen, end = "", time.monotonic() + seconds
        while mark not in seen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {mark!r} in {seen!r}"
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return seen

    def typed(self, keys):
        """The words of the line that the keys make, Tab being \\t."""
        self.write(keys + "\r")
        return re.search(r"<words(.*?)words>", self.read_until("words>"), re.DOTALL).group(1).split("|")[1:-1]

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


# The end of the set-up is said in two pieces, so that the echo of the line is not taken for it.
SAY = "tonnage() { printf '<wor''ds|'; printf '%s|' \"$@\"; printf 'wor''ds>\\n'; }"
READY = "printf '%s-%s\\n' the-end of-it"
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"


@pytest.fixture(scope="module", params=["bash", "bash with bash-completion", "zsh"])
def terminal(request, tmp_path_factory):
    """One shell, which all lines are typed at, one after another."""
    shell, _, more = request.param.partition(" with ")
    need(shell)
    if more and not os.path.exists(BASH_COMPLETION):
        pytest.skip("BASH-COMPLETION IS MISSING (tools/deps test)")
    folder = tmp_path_factory.mktemp("typed")
    (folder / "folder").mkdir()
    (folder / "folder/train.py").touch()
    (folder / "run.json").touch()
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    home = folder / "home"
    home.mkdir()
    if shell == "bash":
        (home / "tonnage").write_text(script_of("bash"))
        words = ["bash", "--norc", "--noprofile", "-i"]
        lines = ["bind 'set bell-style none'", f". {BASH_COMPLETION}" if more else ":", f". {home}/tonnage", SAY, READY]
    else:
        (home / "_tonnage").write_text(script_of("zsh"))
        words = ["zsh", "-f", "-i"]
        lines = [f"fpath=({home} $fpath)", "autoload -Uz compinit", f"compinit -u -d {home}/dump", "unsetopt beep", SAY, READY]
    made = Terminal(words, folder, "\r".join(lines) + "\r")
    made.read_until(END)
    yield made
    made.close()


@pytest.mark.parametrize("keys, words", [
    ("tonnage val\t--l\t", ["validate", "--list"]),
    ("tonnage run --gpu h10\t-p\t-- uptim\t", ["run", "--gpu", "h100-pcie", "--", "uptime"]),
    ("tonnage run --gpu=rtx2\t--init s\t", ["run", "--gpu=rtx2080ti", "--init", "skip"]),
    ("tonnage fit --gpu t4,rtx6\t", ["fit", "--gpu", "t4,rtx6000ada"]),
    ("tonnage fix --apply chun\t8 --qu\t", ["fix", "--apply", "chunked_loss=8", "--quiet"]),
    ("tonnage report ru\t--markd\t out.md", ["report", "run.json", "--markdown", "out.md"]),
    ("tonnage report --diff ru\tru\t", ["report", "--diff", "run.json", "run.json"]),
    ("tonnage run --budget 3 -- ./prog\tfol\ttr\t", ["run", "--budget", "3", "--", "./program", "folder/train.py"]),
    ("tonnage run ./prog\tfol\ttr\t", ["run", "./program", "folder/train.py"]),
    ("tonnage run --json ru\t--no-\t./prog\t--gp\t", ["run", "--json", "run.json", "--no-detail", "./program", "--gp"]),
    ("tonnage gpus l40\t", ["gpus", "l40s"]),
    ("tonnage completion f\t", ["completion", "fish"]),
])  # fmt: skip
def test_typed(terminal, keys, words):
    assert [word for word in terminal.typed(keys) if word] == words


# ---- fish, which says itself what it would offer ----


def offered_by_fish(folder, line):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {folder}/tonnage.fish; complete -C {json.dumps(line)}"],
                          cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"},
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


@pytest.fixture
def fish(tmp_path):
    need("fish")
    (tmp_path / "tonnage.fish").write_text(script_of("fish"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/train.py").touch()
    (tmp_path / "run.json").touch()
    return lambda line: offered_by_fish(tmp_path, line)


@pytest.mark.parametrize("line, words", [
    ("tonnage va", ["validate"]),
    ("tonnage run --gpu h100", ["h100", "h100-nvl", "h100-pcie"]),
    ("tonnage run --gpu=rtx2", ["--gpu=rtx2080ti"]),
    ("tonnage run --init ", ["real", "skip"]),
    ("tonnage fit --gpu t4,rtx6", ["t4,rtx6000ada"]),
    ("tonnage fix --apply chun", ["chunked_loss="]),
    ("tonnage report ru", ["run.json"]),
    ("tonnage report --diff ru", ["run.json"]),
    ("tonnage run --json ru", ["run.json"]),
    ("tonnage run --no-", ["--no-detail"]),
    ("tonnage run --budget 3 --no-", ["--no-detail"]),
    ("tonnage run python --no-", []),
    ("tonnage run --no-detail -- cat folder/tr", ["folder/train.py"]),
    ("tonnage run cat folder/tr", ["folder/train.py"]),
    ("tonnage explain -- cat folder/tr", ["folder/train.py"]),
    ("tonnage gpus l40", ["l40s"]),
    ("tonnage completion ", ["bash", "fish", "zsh"]),
    ("tonnage doctor ", []),
])  # fmt: skip
def test_fish(fish, line, words):
    assert sorted(fish(line)) == words


# ---- what is offered is what is taken ----


def table():
    """{command: [its rows]} of the script for bash."""
    found = re.findall(r"^\t\t(\S+)\) echo '(.*?)' ;;", script_of("bash"), re.MULTILINE)
    return {name: row.split() for name, row in found if name != "''"}


def options_of(command):
    return {row[2:].rstrip("=?").split("=")[0].split("?")[0] for row in table()[command] if row.startswith("--")}


@pytest.mark.parametrize("command", sorted(path.stem.partition("-")[2] for path in MANUALS.glob("tonnage-*.1")))
def test_what_the_manual_page_tells_is_offered(command):
    page = (MANUALS / f"tonnage-{command}.1").read_text()
    listed, told = (set(re.findall(rf"{start}Fl -([a-z-]+)", page, re.MULTILINE)) for start in (r"^\.It ", ""))
    offered = options_of(command) - {"help"}
    assert listed - {"help"} <= offered <= told, (listed - offered, offered - told)


def test_every_command_is_offered():
    found = re.search(r"^\t\t''\) echo '(.*?)'", script_of("bash"), re.MULTILINE).group(1).split()
    told = re.findall(r"^  ([a-z-]+) +\S", subprocess.run([TONNAGE, "--help"], capture_output=True, text=True).stdout, re.MULTILINE)
    assert found == [name for name in told if name != "tonnage"] == list(table())


def test_words_that_are_offered_are_those_that_are_taken():
    """Where a word is refused, the line says which are not."""
    for command in ("run", "fit", "fix"):
        for row in table()[command]:
            option, _, values = row.partition("=")
            if option not in ("--init", "--weights", "--data", "--values", "--writes", "--network", "--assume", "--steps"):
                continue
            done = subprocess.run([TONNAGE, command, option, "voodoo", "--", "true"], capture_output=True, text=True)
            assert done.returncode == 2, option
            for word in values.split(","):
                assert re.search(rf"\b{word}\b", done.stderr), (command, option, word)


def test_cards_and_changes_are_those_of_this_version():
    script = script_of("bash")
    cards = json.loads(subprocess.run([TONNAGE, "gpus", "--json"], capture_output=True, text=True).stdout)["gpus"]
    assert re.search("_tonnage_cards='(.*?)'", script).group(1).split() == [card["aliases"][0] for card in cards]
    import runpy

    rows = runpy.run_path(str(ROOT / "python/tonnage/changes/table.py"))["ROWS"]
    assert re.search("_tonnage_changes='(.*?)'", script).group(1).split() == [f"{row.id}=" for row in rows if row.id != "nothing"]


@pytest.mark.parametrize("words, expected", [
    ([], "name one shell"),
    (["bash", "zsh"], "name one shell"),
    (["tcsh"], '"tcsh" is no shell that there is a script for: bash, zsh or fish'),
    (["--all"], "unknown option --all"),
])  # fmt: skip
def test_wrong_usage(words, expected):
    done = subprocess.run([TONNAGE, "completion", *words], capture_output=True, text=True)
    assert done.returncode == 2 and expected in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_scripts_are_whole(tmp_path):
    """Each shell reads its own without a word."""
    for shell in SHELLS:
        if shutil.which(shell) is None:
            continue
        path = pathlib.Path(tmp_path / shell)
        path.write_text(script_of(shell))
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), shell
