# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` and `tonnage fit` on programs of several ranks: what is found keeps the launcher, and the patch of the script,
run by that launcher, takes what was shown to the byte."""

import pathlib
import shutil
import subprocess

import pytest
from conftest import MAIN, MIB, python_of, run_tonnage
from searches import search

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/ranks"
LAUNCHED = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
LAUNCHERS = {"torchrun": [*LAUNCHED, "to_fix.py"], "mp.spawn": ["to_fix.py", "spawn"]}
CARDS = ["--gpus=2", "--gpu=rtx4090"]
STATE = 16 * 2 * 2048 * 2048 * 4  # AdamW's two numbers for each parameter


def fix(options, words, cwd):
    return search("fix", [*CARDS, *options], [python_of(MAIN), *words], cwd, {"OMP_NUM_THREADS": "1"}, forked=words[0] == "-m")


def needed(run):
    peak = run.report["peak"]
    return peak["device_bytes"] - peak["reserved_bytes"] + peak["allocated_bytes"]


@pytest.mark.parametrize("launcher", ["torchrun", pytest.param("mp.spawn", marks=pytest.mark.long)])
def test_the_state_is_sharded_and_the_patch_takes_what_was_shown(tmp_path, launcher):
    shutil.copy(PROGRAMS / "to_fix.py", tmp_path)
    words = LAUNCHERS[launcher]
    done, document = fix(["--memory=1450MiB", "--seconds=1", "--patch", str(tmp_path / "fix.patch")], words, tmp_path)
    assert done.returncode == 0, done.stderr[-6000:]
    first = document["changes"][0]
    assert (first["id"], first["fits"], first["results"]) == ("shard_state", True, "same"), first
    assert first["saved_bytes"] == STATE // 2, first
    assert first["step_time_ratio"] is None, first  # each rank updates half of the parameters, but what the cards send is not counted
    shown = " ".join(done.stderr.split())
    assert " ".join(words) in shown and "--gpus 2" in shown, done.stderr  # the launcher is part of the line to copy
    subprocess.run(["patch", "-p1", "--silent", "-i", "fix.patch"], cwd=tmp_path, check=True)
    again = run_tonnage([*CARDS, "--memory=1450MiB", "--steps=all"], [python_of(MAIN), *words], tmp_path, {"OMP_NUM_THREADS": "1"},
                        forked=launcher == "torchrun")  # fmt: skip
    assert (again.status, again.verdict) == (0, "fits") and needed(again) == first["needed_bytes"], again.explain()
    assert [row["at_peak"]["by_category"]["optimizer_state"] for row in again.report["ranks"]] == [STATE // 2] * 2, again.explain()


@pytest.mark.long
def test_what_shards_already_is_not_advised_to(tmp_path):
    """Nor is gradient_as_bucket_view, which the program has."""
    text = (PROGRAMS / "to_fix.py").read_text().replace(
        "torch.optim.AdamW(model.parameters(), 1e-4, foreach=False)",
        "torch.distributed.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, foreach=False)")  # fmt: skip
    (tmp_path / "to_fix.py").write_text(text.replace("import torch\n", "import torch\nimport torch.distributed.optim\n", 1))
    document = fix(["--memory=1200MiB", "--seconds=1"], LAUNCHERS["torchrun"], tmp_path)[1]
    tried = {part for change in document["changes"] for part in change["combination"]}
    assert tried and not tried & {"shard_state", "bucket_view"}, document


@pytest.mark.long
def test_a_state_that_is_saved_is_not_sharded(tmp_path):
    """A checkpoint of one would want to be gathered first: the change is left to the person."""
    text = (PROGRAMS / "to_fix.py").read_text().replace(
        '    print("rank"', '    saved = optimizer.state_dict() if rank == 0 else None\n    print(len(saved or ()), "rank"')  # fmt: skip
    (tmp_path / "to_fix.py").write_text(text)
    document = fix(["--memory=1450MiB", "--seconds=1"], LAUNCHERS["torchrun"], tmp_path)[1]
    tried = {part for change in document["changes"] for part in change["combination"] if change["fits"]}
    assert tried and "shard_state" not in tried, document


def test_the_fullest_rank_decides(tmp_path):
    """Rank 1 has a batch of 64 times the size: what is missing is what it misses, and what fits, fits on it."""
    text = (PROGRAMS / "to_fix.py").read_text().replace("torch.randn(64,", "torch.randn(64 * (1 + 63 * rank),")
    (tmp_path / "to_fix.py").write_text(text)
    done, document = fix(["--memory=1700MiB", "--seconds=1"], LAUNCHERS["torchrun"], tmp_path)
    run = run_tonnage([*CARDS, "--steps=all"], [python_of(MAIN), *LAUNCHERS["torchrun"]], tmp_path, {"OMP_NUM_THREADS": "1"}, forked=True)
    peaks = [row["peak"]["device_bytes"] for row in run.report["ranks"]]
    assert peaks[1] > peaks[0] + 256 * MIB and document["unchanged"]["needed_bytes"] == needed(run), (peaks, document)
    first = document["changes"][0]
    assert done.returncode == 0 and first["fits"], done.stderr[-6000:]
    for key in ("peak_device_bytes", "needed_bytes"):
        assert first[key] <= 1700 * MIB, first
