# SPDX-License-Identifier: Apache-2.0
"""CUDA memory and events between processes of a run: one allocation counts once, whoever has it open."""

import pytest
from conftest import ENDS, MAIN

FORKED = True  # ../fork_servers.py

EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
LONG = [pytest.param(wheel, "c", marks=pytest.mark.long) for wheel in ENDS]


def lines_of(run):
    return dict(line.split(maxsplit=1) for line in run.stdout.splitlines())


@pytest.mark.parametrize("wheel, allocator", [(MAIN, "c"), (MAIN, "expandable"), *LONG])
def test_a_tensor_of_two_processes_counts_once(tonnage, wheel, allocator):
    env = EXPANDABLE if allocator == "expandable" else {}
    run = tonnage(wheel, ["programs/shared_tensor.py", "free"], "--gpu=rtx3060", "--steps=all", env=env)
    assert run.status == 0 and not run.report["coverage"]["refused_calls"], run.explain()
    told = {name: int(value) for name, value in lines_of(run).items()}
    assert told["open"] == told["closed"], run.explain()
    assert 256 <= told["open"] <= 256 + 20, run.explain()  # an expandable segment ends on a whole 20 MiB
    assert told["freed"] <= 20, run.explain()


def test_who_is_killed_has_nothing_open(tonnage):
    run = tonnage(MAIN, ["programs/shared_tensor.py", "kill"], "--gpu=rtx3060", "--steps=all")
    told = lines_of(run)
    assert run.status == 0 and told["open"] == told["killed"] == "256", run.explain()


def test_loader_workers_may_return_cuda_tensors(tonnage):
    run = tonnage(MAIN, "programs/cuda_workers.py", "--gpu=rtx3060", "--steps=all")
    assert run.status == 0 and run.verdict == "fits", run.explain()
    assert "done cuda:0 (8, 3, 64, 64)" in run.stdout, run.explain()
    assert run.report["steps"]["seen"] == 8, run.explain()  # the trainer's, whatever a worker holds
