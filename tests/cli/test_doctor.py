# SPDX-License-Identifier: Apache-2.0
"""tonnage doctor as a command. What it finds is tested on made machines (tests/doctor); here: options, statuses, JSON, a real torch."""

import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import fork_servers
import pytest
from command import TONNAGE

HERE = pathlib.Path(__file__).resolve().parent


def examine(tonnage, schema, *words):
    """The document of `tonnage doctor --json`, whose status must be that of its summary."""
    done = tonnage("doctor", "--json", *words)
    document = json.loads(done.stdout)
    schema("doctor", document)
    summary = document["summary"]
    assert done.returncode == (1 if summary["errors"] + summary["warnings"] else 0) and done.stderr == ""
    return document


def ids(document):
    return [finding["id"] for finding in document["findings"]]


def test_this_machine(tonnage, schema):
    document = examine(tonnage, schema)
    assert document["cards"] or ids(document)  # a machine without a card is told so
    text = tonnage("doctor").stdout
    for finding in document["findings"]:
        assert finding["what"].split()[0] in text


def test_screen_has_no_line_beyond_the_terminal(tonnage):
    tonnage.env["COLUMNS"] = "80"
    lines = tonnage("doctor").stdout.splitlines()
    assert lines[0].startswith(("Found: ", "Nothing found"))
    assert all(len(line) <= 80 or "/" in line for line in lines)


def test_usage(tonnage):
    for words, said in (
        (["--nonsense"], "--nonsense"),
        (["extra"], "no arguments"),
        (["--python"], "needs a path"),
        (["--python", "/nowhere/python"], "no Python at"),
        (["--python", "no-such-python"], "no Python at"),
    ):
        done = tonnage("doctor", *words)
        assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, words
    assert tonnage("doctor", "--help").stdout.startswith("usage: tonnage doctor")


WRONG = ["foo:1", "expandable_segments:true", "max_split_size_mb:10", "garbage_collection_threshold:1.5", "backend:nativ", "expandable_segments"]
RIGHT = "max_split_size_mb:64"
# What torch says of itself, and with which settings it works: it reads them when it first uses CUDA, so that one import serves all of them.
ASK = """
import json, os, sys, torch
for setting in sys.argv[1:]:
    if os.fork() == 0:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting
        try:
            torch.zeros(1, device="cuda")
            print("worked with", setting, flush=True)
        finally:
            os._exit(0)
    os.wait()
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "architectures": torch._C._cuda_getArchFlags().split()}))
"""
said = []  # by torch, once a test has asked it


@pytest.fixture
def torch(tonnage):
    """What this Python's torch says of itself, and the settings that it works with."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("this Python has no torch")
    if not said:
        said.extend(ask(tonnage).stdout.splitlines())
    return {**json.loads(said[-1]), "works": {line.removeprefix("worked with ") for line in said[:-1]}}


def ask(tonnage):
    """The finished run, of a process that has imported torch already where it may be forked."""
    words = ["run", "--gpu=rtx3060", "--", sys.executable, "-c", ASK, *WRONG, RIGHT]
    if not fork_servers.is_fresh():
        environment = {**tonnage.env, "OMP_NUM_THREADS": "1"}  # the server that others use
        done = fork_servers.run_forked(TONNAGE, sys.executable, words[1:2], [TONNAGE, *words], tonnage.cwd, environment, settings=["OMP_NUM_THREADS"],
                                       timeout=60)  # fmt: skip
        if done is not None:
            return done
    return tonnage(*words)


def test_a_real_torch_is_read_without_being_started(tonnage, schema, torch):
    # The interpreter is this one; what its torch says of itself must be what was read from its files.
    document = examine(tonnage, schema, "--python", sys.executable)
    python = document["python"]
    assert python["torch"] == torch["torch"] and python["cuda"] == torch["cuda"]
    assert python["version"] == "%d.%d" % sys.version_info[:2]
    whole = ["sm_" + row["compute_capability"].replace(".", "") for row in python["architectures"] if row["whole"]]
    assert whole == [name for name in torch["architectures"] if not name.startswith("compute")] != []


def test_settings_are_those_that_this_torch_knows(tonnage, schema, torch):
    tonnage.env["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64,expandable_segments:True,backend:native"
    assert not [name for name in ids(examine(tonnage, schema, "--python", sys.executable)) if "allocator" in name]
    tonnage.env["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size:64"
    found = examine(tonnage, schema, "--python", sys.executable)["findings"]
    assert "torch %s does not know" % torch["torch"] in next(f["what"] for f in found if f["id"] == "allocator_unknown")


@pytest.mark.parametrize("setting", WRONG)
def test_what_is_named_is_what_torch_refuses(tonnage, schema, torch, setting):
    tonnage.env["PYTORCH_CUDA_ALLOC_CONF"] = setting
    named = [name for name in ids(examine(tonnage, schema, "--python", sys.executable)) if name.startswith("allocator")]
    assert len(named) == 1 and RIGHT in torch["works"] and setting not in torch["works"]


def test_a_python_without_torch(tonnage, schema):
    prefix = tonnage.cwd / "prefix with a blank"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", prefix / "bin/python")
    assert "torch_missing" in ids(examine(tonnage, schema, "--python", prefix / "bin/python"))


def test_on_a_virtual_card(tonnage, schema):
    # The virtual card answers NVML, so that doctor sees it in a run: the card, and nothing that keeps programs from it.
    tonnage("run", "--gpu", "rtx3060", "--", "sh", "-c", f"{TONNAGE} doctor --json > document.json")
    scratch = next(tonnage.temporary.rglob("document.json"), tonnage.cwd / "document.json")
    document = json.loads(scratch.read_text())
    schema("doctor", document)
    card = document["cards"][0]
    assert card["name"] == "NVIDIA GeForce RTX 3060" and card["compute_capability"] == "8.6" and card["answers"]
    assert not [f for f in document["findings"] if f["severity"] == "error" and f["part"] in ("driver", "card")]


def test_a_driver_that_answers_little(tonnage, schema):
    # The FAKE driver knows a dozen functions; what it does not know is unknown, not zero.
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the fake driver")
    libraries = tonnage.cwd.parent / "driver"
    libraries.mkdir()
    subprocess.run([compiler, "-shared", "-fPIC", "-o", libraries / "libnvidia-ml.so.1", HERE / "fake_driver.c"], check=True)
    tonnage.env["LD_LIBRARY_PATH"] = str(libraries)
    document = examine(tonnage, schema)
    assert document["driver"] == {"version": "999.1", "cuda": None}
    assert document["cards"][0]["total_bytes"] is None and document["cards"][0]["compute_capability"] is None
