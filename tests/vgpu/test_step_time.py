# SPDX-License-Identifier: Apache-2.0
"""The time of a step under a change, against what is known of it: the real changes, on a real PyTorch, whose work the virtual
GPU counts. The ratio is put together here by hand from the counts, and as `tonnage fix` tells it."""

import json
import os
import subprocess

import pytest
from conftest import HERE, TEMPORARY, TONNAGE, python_of

ENVIRONMENTS = ["torch-2.11.0", pytest.param("torch-2.6.0", marks=pytest.mark.long),
                pytest.param("torch-2.15.0", marks=pytest.mark.long)]  # fmt: skip


@pytest.fixture(params=ENVIRONMENTS, scope="module")
def ratio(request, tmp_path_factory):
    """ratio(change, gpu, memory) -> the change of `tonnage fix` on a card too small for the program as it is"""
    folder, environment = tmp_path_factory.mktemp("step_time"), request.param
    known = {}

    def fix(gpu, memory):
        if (gpu, memory) not in known:
            out = folder / "out.json"
            words = [str(TONNAGE), "fix", "--gpu", gpu, "--memory", memory, "--steps", "4", "--json", str(out), "--",
                     python_of(environment), str(HERE / "programs/step_time.py")]  # fmt: skip
            variables = {**os.environ, "TMPDIR": TEMPORARY.name}
            done = subprocess.run(words, cwd=folder, env=variables, timeout=600, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-6000:]
            known[gpu, memory] = {change["id"]: change for change in json.loads(out.read_text())["changes"]}
        return known[gpu, memory]

    return fix


def test_changes_of_a_transformer_cost_what_is_known(ratio):
    changes = ratio("rtx3060", "5GiB")
    told = {name: (change["step_time_ratio"], change["step_time_range"]) for name, change in changes.items()}
    for name, change in changes.items():
        if change["step_time_ratio"] is not None:
            low, high = change["step_time_range"]
            assert low <= change["step_time_ratio"] <= high, told
    # all blocks forward again: a third of the arithmetic more, less the head and the optimizer
    checkpoint = changes["checkpoint=1"]["step_time_ratio"]
    assert 1.2 <= checkpoint <= 1.4, told
    # the same samples in pieces: the arithmetic of the whole, and more launches
    accumulate = next(change for name, change in changes.items() if name.startswith("accumulate="))
    assert 0.95 <= accumulate["step_time_ratio"] <= 1.2, told
