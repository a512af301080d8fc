# SPDX-License-Identifier: Apache-2.0
"""Nothing that a program does loses the recording, and the recording changes nothing of what torch.compile makes."""

import json
import pathlib
import subprocess

import pytest

from conftest import HERE, MAIN, WHEELS, python_of

GPU = "--gpu=rtx3060"


def lost(run):
    return [row for row in run.report["sensors"] if row["state"] == "lost"]


def graphs(text):
    return {words[1]: words[2:] for words in map(str.split, text.splitlines()) if words[:1] == ["way:"]}


@pytest.mark.parametrize("wheel", WHEELS)
def test_torch_compile_makes_the_graphs_that_it_makes_without(tonnage, wheel, tmp_path):
    """23 ways to write it. The counts without Tonnage are those of the same program on the CPU, in plain Python."""
    program = HERE / "programs/ways_to_compile.py"
    plain = subprocess.run([python_of(wheel), str(program), "cpu"], capture_output=True, text=True, timeout=300)
    run = tonnage(wheel, ["programs/ways_to_compile.py", "cuda"], GPU, "--steps=all")
    expected = graphs(plain.stdout)
    assert len(expected) >= 20 and all(int(words[0]) >= 1 for words in expected.values()), plain.stdout + plain.stderr
    assert graphs(run.stdout) == expected, run.explain()
    assert lost(run) == [] and "global hooks" not in run.stderr, run.explain()
    assert run.report["steps"]["seen"] > 0


@pytest.mark.parametrize("wheel", WHEELS)
def test_tensors_without_memory_are_left_alone(tonnage, wheel):
    run = tonnage(wheel, "programs/tensors_without_memory.py", GPU)
    assert run.status == 0 and run.stdout == "three steps\n", run.explain()
    assert lost(run) == [] and run.report["steps"]["seen"] == 3, run.explain()


def test_a_value_read_on_autograds_thread(tonnage):
    run = tonnage(MAIN, "programs/mask_backward.py", GPU)
    assert run.status == 0 and lost(run) == [] and run.report["steps"]["seen"] == 5, run.explain()
