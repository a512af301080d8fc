# SPDX-License-Identifier: Apache-2.0
"""`--then`: a second command finds what the first one left, and what resuming costs is what the sizes say.

Each library twice: as it should be, where nothing is found, and with the mistake, where exactly the bytes are found that lie
there for nothing.
"""

import json
import pathlib
import shutil
import subprocess

import pytest
from conftest import MAIN, MIB, TONNAGE, libraries_of, python_of
from fork_servers import LIBRARIES

FORKED = True  # ../fork_servers.py
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/resume"
FOUND = {"checkpoint_held", "checkpoint_on_card", "optimizer_state_twice", "model_copy"}


@pytest.fixture
def chain(tonnage):
    """chain(program, [words of the first, words of the next, ...], *options): the run of all."""

    def run(program, commands, *options, imports=None, **more):
        path = PROGRAMS / program
        imports = libraries_of([path]) if imports is None else imports
        python = python_of(MAIN)
        then = [f"--then={python} {path} {words}" for words in commands[1:]]
        return tonnage(MAIN, [str(path), *commands[0].split()], "--gpu=rtx3060", *then, *options, timeout=900, imports=imports, **more)

    return run


def found(execution):
    return {row["id"]: row["bytes"] for row in execution["findings"] if row["id"] in FOUND}


def allocated(execution):
    return execution["peak"]["allocated_bytes"]


def test_what_plain_resuming_costs(chain):
    """Eight layers of 16 MiB. The optimizer keeps what it is given, so only the model's part lies there for nothing."""
    run = chain("plain.py", ["train", "held", "cpu", "let_go", "twice"])
    train, held, cpu, let_go, twice = run.report["executions"]
    assert run.status == 0 and all(one["verdict"] == "fits" for one in run.report["executions"]), run.explain()
    assert found(train) == found(cpu) == found(let_go) == {}, run.explain()
    assert found(held) == {"checkpoint_held": 128 * MIB}, run.explain()
    assert allocated(held) - allocated(cpu) == 128 * MIB and allocated(cpu) == allocated(let_go) == allocated(train)
    assert found(twice)["checkpoint_held"] == 128 * MIB, run.explain()
    assert 256 * MIB <= found(twice)["optimizer_state_twice"] < 257 * MIB, run.explain()
    line = next(row["at"]["line"] for row in held["findings"] if row["id"] == "checkpoint_held")
    assert "torch.load" in (PROGRAMS / "plain.py").read_text().splitlines()[line - 1]
    assert allocated(run.report) == allocated(twice)  # the highest peak is shown
    assert "5. python" in run.stderr and "Command 5:" in run.stderr


def test_the_first_that_does_not_fit_decides(chain):
    """Room for the training, and not for the checkpoint beside it; what would come after it is not started."""
    run = chain("plain.py", ["train", "held", "cpu"], "--memory=760MiB")
    assert [one["verdict"] for one in run.report["executions"]] == ["fits", "out_of_memory"], run.explain()
    assert run.status == 10 == run.report["exit_status"] and run.verdict == "out_of_memory", run.explain()
    assert run.report["program"]["command"].endswith("plain.py held") and "3. " in run.stderr and "not run" in run.stderr
    assert run.report["findings"][0]["id"] == "checkpoint_held", run.explain()


def test_a_command_that_is_followed_is_not_ended_before_it_has_saved(chain):
    """Its memory has settled after some ten steps; it saves every 300."""
    run = chain("endless.py", ["", "--resume"])
    first, second = run.report["executions"]
    assert first["steps"]["seen"] >= 300 and second["exception"] is None and second["verdict"] == "fits", run.explain()
    assert second["steps"]["seen"] < 300, run.explain()  # nothing comes after it


def test_fix_cures_a_resume_that_holds_the_checkpoint_twice(chain, tmp_path):
    """On a card with room for the training alone. What is found is to the byte what the same mistake mended by hand takes, and
    so is the program that the patch leaves."""
    program = tmp_path / "plain.py"
    shutil.copy(PROGRAMS / "plain.py", program)
    commands = [[python_of(MAIN), program, how] for how in ("train", "held", "cpu")]
    by_hand = chain("plain.py", ["train", "cpu"], "--memory=1TiB").report["executions"][1]
    held = chain("plain.py", ["train", "held"], "--memory=1TiB").report["executions"][1]
    words = [TONNAGE, "fix", "--gpu", "rtx3060", "--memory", "760MiB", "--then", " ".join(map(str, commands[1]))]
    out, patch = tmp_path / "fix.json", tmp_path / "fix.diff"
    done = subprocess.run([*words, "--json", out, "--", *commands[0]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["unchanged"]["command"].endswith("plain.py held") and document["unchanged"]["at"] == "plain.py:20"
    found = {row["id"]: row for row in document["changes"]}
    for name in ("map_location", "release_checkpoint"):
        assert found[name]["outcome"] == "fits" and found[name]["saved_bytes"] == 128 * MIB == allocated(held) - allocated(by_hand)
    assert "--then" in done.stderr and "Where" in done.stderr
    applied = [*words, "--apply", "map_location", "--patch", patch, "--quiet", "--", *commands[0]]
    assert subprocess.run(applied, cwd=tmp_path).returncode == 0
    subprocess.run(["patch", "-p0", program, patch], check=True, capture_output=True)
    mended = tmp_path / "mended.json"
    run = [TONNAGE, "run", "--quiet", "--json", mended, "--gpu", "rtx3060", "--memory", "760MiB", "--then", words[-1]]
    assert subprocess.run([*run, "--", *commands[0]], cwd=tmp_path).returncode == 0
    assert allocated(json.loads(mended.read_text())["executions"][1]) == allocated(by_hand)


def test_data_of_a_file_is_no_checkpoint(tonnage):
    run = tonnage(MAIN, [str(PROGRAMS / "data.py")], "--gpu=rtx3060", "--steps=all")
    assert found(run.report) == {}, run.explain()


def test_trainers_own_ways_have_no_mistake(chain):
    """transformers, accelerate (on the CPU and on the card), torch.distributed.checkpoint: nothing is told, and resuming takes no more than
    training did."""
    for program, commands, imports in (
        ("hf.py", ["", "resume"], LIBRARIES),
        ("acc.py", ["", "resume", "card"], None),
        ("dcp.py", ["", "resume"], None),
    ):
        run = chain(program, commands, imports=imports)
        first, *others = run.report["executions"]
        assert run.status == 0 and len(others) == len(commands) - 1, run.explain()
        assert all(found(one) == {} and one["steps"]["seen"] > 0 for one in others), run.explain()
        assert all(allocated(one) <= allocated(first) + MIB for one in others), run.explain()


def test_lightning_and_a_checkpoint_that_the_program_holds_beside_it(chain):
    """Four layers of 2048 x 2049 numbers: the model and two numbers of Adam for each."""
    run = chain("pl.py", ["", "resume", "held"])
    first, resumed, held = run.report["executions"]
    model = 4 * 2048 * 2049 * 4
    assert found(first) == found(resumed) == {} and allocated(first) == allocated(resumed), run.explain()
    assert found(held)["checkpoint_held"] == model, run.explain()
    assert 2 * model <= found(held)["optimizer_state_twice"] < 2 * model + MIB, run.explain()
    assert any("made no step" in words for words in held["steps"]["not_seen"]), run.explain()
