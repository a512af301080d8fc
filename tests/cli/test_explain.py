# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain`: every golden text, in its own layout and in others, and the command's bad input."""

import json
import os
import re
import resource
import subprocess
import textwrap

import pytest
from command import ROOT, TONNAGE

GOLDEN = ROOT / "tests/golden/explain"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))


def read(name):
    return (GOLDEN / f"{name}.txt").read_bytes().decode()


def wanted(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


def found(text, *words):
    if not TONNAGE.exists():
        pytest.fail(f"{TONNAGE} is missing: make build")
    data = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run([str(TONNAGE), "explain", *(words or ["-", "--json", "-"])], input=data, capture_output=True,
                          timeout=60)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def errors(text):
    return json.loads(found(text))["errors"]


def prefixed(prefix):
    return lambda text: "\n".join(prefix + line for line in text.split("\n"))


def boxed(text):
    return "\n".join(f"│ {line.ljust(100)} │" for line in text.split("\n"))


def coloured(text):
    return "\n".join("\033[31m" + line.replace(" memory", "\033[0m memory", 1) + "\033[0m" for line in text.split("\n"))


def surrounded(text):
    before = "\n".join(f"step {i} loss 0.{i:03}" for i in range(200))
    after = "\n".join(f"step {i} memory 9.{i:03} GiB free 1.00 GiB" for i in range(200))
    return f"{before}\n{text}\n{after}\n"


LAYOUTS = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "coloured": coloured,
    "compose": prefixed("trainer-0  | "),
    "comment": prefixed("# "),
    "quoted": prefixed("> "),
    "worker": prefixed("(RayWorker pid=1234, ip=10.0.0.1) "),
    "logged": prefixed("2025-05-05 10:11:12,123 - root - ERROR - "),
    "bracket": prefixed("[2025-05-05 10:11:12] "),
    "iso": prefixed("2025-05-05T10:11:12.123Z "),
    "json": lambda text: json.dumps({"level": "error", "message": text}),
    "boxed": boxed,
    "nul": lambda text: text.replace(" ", "\0 "),
    "utf16": lambda text: text.encode("utf-16"),
    "surrounded": surrounded,
}
# What a layout takes away: shells and notebooks say some things only at the start of a line, and doubled prefixes
# hide others.
EXCEPT = {
    "json": {"notebook", "old_notebook", "rich_box", "memory_error", "mpirun_rank", "none_code", "windows",
             "chained_repeat", "json_log", "ranks", "hard_wrapped"},
    "boxed": {"mpirun_rank"},
    "quoted": {"mpirun_rank"},
    "comment": {"mpirun_rank"},
    "compose": {"mpirun_rank", "compose_prefix"},
    "worker": {"mpirun_rank", "traceback_after"},
    "logged": {"mpirun_rank", "remark"},
    "bracket": {"mpirun_rank"},
    "iso": {"mpirun_rank"},
}


@pytest.mark.parametrize("name", NAMES)
def test_golden(name):
    assert json.loads(found(read(name))) == wanted(name)


def test_there_are_enough_of_them():
    documents = [wanted(name) for name in NAMES]
    assert len(NAMES) >= 100
    assert len({error["family"] for document in documents for error in document["errors"]}) >= 30
    assert sum(not document["errors"] for document in documents) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_schema(schema, name):
    schema("explain", wanted(name))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_does_not_matter(layout):
    different = []
    for name in NAMES:
        if name in EXCEPT.get(layout, ()):
            continue
        first, again = wanted(name)["errors"], errors(LAYOUTS[layout](read(name)))
        if [error["fields"] for error in first[:1]] != [error["fields"] for error in again[:1]]:
            different.append(name)
    assert different == []


def test_a_rank_in_front():
    text = prefixed("[rank5]: ")(read("reserved_full"))
    assert errors(text)[0]["fields"] == {**wanted("reserved_full")["errors"][0]["fields"], "rank": 5}


@pytest.mark.parametrize("width", [60, 79, 100, 140])
def test_wrapped_at_words(width):
    for name in ("capacity_processes", "private_pools", "allowed_cap", "reserved_half_card", "hip", "mps", "cupy"):
        text = textwrap.fill(read(name), width, break_long_words=False, break_on_hyphens=False)
        assert errors(text)[0]["fields"] == wanted(name)["errors"][0]["fields"], name


@pytest.mark.parametrize("width", range(72, 130, 3))
def test_wrapped_within_words(width):
    for name in ("capacity_processes", "private_pools", "allowed_cap", "reserved_half_card"):
        text = read(name)
        text = "\n".join(text[i : i + width] for i in range(0, len(text), width))
        assert errors(text)[0]["fields"] == wanted(name)["errors"][0]["fields"], (name, text)


def test_cut_at_every_byte():
    """A figure is either the whole text's or null; nothing is made up."""
    for name in ("capacity_processes", "reserved_full", "mps", "cuda_malloc_async", "nccl"):
        text, whole = read(name), wanted(name)["errors"][0]["fields"]
        for end in range(0, len(text), 3):
            for error in errors(text[:end])[:1]:
                for field, value in error["fields"].items():
                    if field in ("other_processes", "culprit", "rank", "device_kind"):
                        continue
                    assert value is None or value == whole[field] or name == "nccl", (name, end, field)


@pytest.mark.parametrize("name", NAMES)
def test_for_a_person(name):
    text = found(read(name), "-")
    count = len(wanted(name)["errors"])
    assert max(len(line) for line in text.splitlines()) <= 100
    assert ("No out-of-memory error in this text" in text) == (count == 0)
    assert len(re.findall("Why: ", text)) == min(count, 3)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    if count and wanted(name)["errors"][0]["fields"]["culprit"]:
        assert "your code: " + wanted(name)["errors"][0]["fields"]["culprit"] in text


def test_what_a_person_reads():
    text = found(read("cached_idle"), "-")
    assert "Out of memory on GPU 2" in text
    assert "asked 600.00 MiB, 120.00 MiB free of 8.00 GiB: short by 480.00 MiB" in text
    assert "fragmentation" in text
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in text


def test_many_errors_are_summed_up():
    line = "RuntimeError: CUDA out of memory. Tried to allocate %d.00 MiB (GPU 0; 10.00 GiB total capacity; " \
           "9.00 GiB already allocated; 1.00 MiB free; 9.50 GiB reserved in total by PyTorch)\n"  # fmt: skip
    log = "".join(line % (i + 30) for i in range(100))
    assert len(errors(log)) == 100
    text = found(log, "-")
    assert "and 77 more" in text
    assert len(text.splitlines()) < 120


def test_a_very_long_line():
    noise = "x" * 200_000 + " "
    text = noise + read("capacity_processes").strip() + " " + noise
    assert errors(text)[0]["fields"] == wanted("capacity_processes")["errors"][0]["fields"]


def test_memory_does_not_grow(tmp_path):
    log = tmp_path / "long.log"
    with log.open("w") as out:
        for i in range(150_000):
            out.write(f"2025-05-05 10:11:12 INFO step {i} loss 0.5 memory 10.2 GiB reserved, 3.1 GiB free on GPU 0\n")
        out.write(read("reserved_full"))
    done = subprocess.run([str(TONNAGE), "explain", str(log), "--json"], capture_output=True, check=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (4 << 20, 4 << 20)))  # fmt: skip
    assert len(json.loads(done.stdout)["errors"]) == 1


def test_files(tonnage):
    (tonnage.cwd / "error.log").write_text(read("hip"))
    done = tonnage("explain", "error.log", "--json", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Out of memory on GPU 0" in done.stdout
    assert json.loads((tonnage.cwd / "out.json").read_text()) == wanted("hip")
    assert json.loads(tonnage("explain", "--json", "error.log").stdout) == wanted("hip")
    assert json.loads(tonnage("explain", "error.log", "--json=-").stdout) == wanted("hip")
    assert (tonnage.cwd / "error.log").read_text() == read("hip")


def test_a_log_is_not_written_over(tonnage):
    (tonnage.cwd / "a.log").write_text("precious")
    (tonnage.cwd / "b.log").write_text(read("hip"))
    done = tonnage("explain", "--json", "a.log", "b.log")
    assert done.returncode == 2
    assert "a.log" in done.stderr
    assert (tonnage.cwd / "a.log").read_text() == "precious"


@pytest.mark.parametrize("words", ["missing.log", ".", "a b", "--nonsense", "error.log --json no/such/out"])
def test_wrong_usage(tonnage, words):
    (tonnage.cwd / "error.log").write_text("nothing")
    done = tonnage("explain", *words.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"tonnage: explain: .*\n", done.stderr)


def test_empty_and_binary():
    assert errors(b"") == []
    assert errors(bytes(range(256)) * 4000) == []
    assert errors(b"\x80\xfe\xff CUDA out of memory. Tried to allocate 2.00 GiB\xff") != []


def test_a_full_disk():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(TONNAGE), "explain", "-"], input=read("hip"), stdout=full, stderr=subprocess.PIPE,
                              text=True)  # fmt: skip
    assert done.returncode == 125
    assert done.stderr.startswith("tonnage: writing failed")
