# SPDX-License-Identifier: Apache-2.0
"""Where every byte goes: categories add up, equal what the programs hold by their own count, and have a line."""

import json
import pathlib

import pytest
from conftest import memory_option

HERE = pathlib.Path(__file__).parent
JOBS = sorted(path.stem for path in (HERE / "jobs").glob("*.py"))
WHEEL = "torch-2.11.0"
GPU = "--gpu=a100-80"
LIVE = ("parameters", "gradients", "optimizer_state", "activations", "inputs", "temporaries", "workspaces")
# The cuDNN cache of cuda_graph keeps its own pool; everywhere else nothing is left over.
NAMED = 0.98


def moments_of(run):
    """Every moment that a report tells of, with the bytes that the card held then."""
    peak, oom = run.report["at_peak"], run.report["out_of_memory"]
    yield peak, run.device_bytes
    if oom is not None and oom["by_category"] is not None:
        yield oom, run.report["gpu"]["total_bytes"] - oom["free_bytes"]


def check_sums(run):
    for moment, held in moments_of(run):
        assert moment["by_category"] is not None, run.explain()
        assert sum(moment["by_category"].values()) == held, run.explain()
        assert all(value >= 0 for value in moment["by_category"].values()), run.explain()


def named_share(moment):
    """Of the bytes of live tensors, those whose holder has a line."""
    total = sum(moment["by_category"][name] for name in LIVE)
    named = sum(row["bytes"] for row in moment["holders"] if row["category"] in LIVE and row["file"])
    return named / total if total else 1.0


def census_of(run):
    return [json.loads(line.split(" ", 1)[1]) for line in run.stdout.splitlines() if line.startswith("census ")]


@pytest.mark.parametrize("job", JOBS)
def test_categories_add_up_and_have_lines(tonnage, job):
    run = tonnage(WHEEL, f"jobs/{job}.py", GPU)
    assert run.verdict == "fits", run.explain()
    check_sums(run)
    share = named_share(run.report["at_peak"])
    assert share >= NAMED, f"{share:.4f}\n{run.explain()}"


@pytest.mark.parametrize("job", JOBS)
def test_categories_are_what_the_program_holds(tonnage, job):
    """Parameters and optimizer state at every peak; gradients where the peak lies outside of a backward pass."""
    run = tonnage(WHEEL, ["programs/census.py", str(HERE / f"jobs/{job}.py")], GPU, "--steps=all")
    assert run.verdict == "fits", run.explain()
    check_sums(run)
    rows, peak = census_of(run), run.report["at_peak"]
    held = peak["by_category"]
    for category in ("parameters", "optimizer_state", "gradients"):
        counted = {row[category] for row in rows}
        if held[category] in counted:
            continue
        # Between two counts: during a backward pass some gradients are there, in the first update some of the state.
        growing = {"gradients": ("backward",), "optimizer_state": ("optimizer",), "parameters": ("build", "load")}
        assert peak["phase"] in growing[category], (category, counted, run.explain())
        assert 0 <= held[category] <= max(counted), (category, counted, run.explain())
    if rows and len(rows) > 1:
        assert held["parameters"] > 0, run.explain()


@pytest.mark.parametrize("job", ["gpt2", "resnet50", "peft_lora", "gan", "hf_trainer", "lstm"])
def test_an_out_of_memory_adds_up_and_has_lines(tonnage, job):
    large = tonnage(WHEEL, f"jobs/{job}.py", GPU)
    small = tonnage(WHEEL, f"jobs/{job}.py", GPU, memory_option(0.8 * large.device_bytes))
    assert small.verdict == "out_of_memory", small.explain()
    check_sums(small)
    assert small.report["out_of_memory"]["by_category"] is not None, small.explain()
    assert named_share(small.report["out_of_memory"]) >= NAMED, small.explain()
