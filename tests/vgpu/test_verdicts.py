# SPDX-License-Identifier: Apache-2.0
"""Every job gets the right verdict: `fits` on a card just above what it needs, `out_of_memory` with 80 % of that; and
every byte of the card has its category, and nearly all of them a line. Where it fits, nothing is found wrong.

What a job needs is the peak of its run on a large card. Where bench/results/wheels.csv knows it from an earlier run, the
first run gets a card just above that: when it fits and its peak is what was known, one run has shown both; when not, the
large card is asked. Some jobs deal with the card's limit themselves:
  - retry_smaller halves its batch until that fits and gives up below a least one: it needs what its least batch needs;
  - memory_fraction allows itself half of the card: it needs a card of which the half holds all that PyTorch reserves;
  - the convolutions of amp_scaler and record_stream take workspaces of hundreds of MiB where there is room, and PyTorch
    takes the next plan where there is none: at 80 % they truly fit, at half they do not.

The properties that a test records go into bench/results/wheels.csv (bench/wheels.py).
"""

import csv
import pathlib

import pytest
from conftest import ENDS, MAIN, MIB, ROOT, check_categories, memory_option

FORKED = True  # ../fork_servers.py

JOBS = sorted(path.stem for path in (pathlib.Path(__file__).parent / "jobs").glob("*.py"))
# Not in `make test`, since an example or another test shows the like there; all of them in `make long`.
ELSEWHERE = ["accelerate_loop", "dataloader", "gan", "generate", "hf_trainer", "lightning_trainer", "memory_fraction",
             "peft_lora", "retry_smaller"]  # fmt: skip
# On the oldest and the newest wheel in `make test`; all the others in `make long`.
OFTEN = ["gpt2"]
LEAST_BATCH = ["--batch=32"]  # the default of retry_smaller's --least
FRACTION = 0.5  # what memory_fraction asks for
TOO_LITTLE = {"amp_scaler": 0.5, "record_stream": 0.5}  # of what is needed; else 80 %
OWN_LIMITS = ["retry_smaller", "memory_fraction"]
GPU = "--gpu=a100-80"
LARGE = "--memory=80GiB"
ALL = "--steps=all"


def cases():
    for wheel in [MAIN, *ENDS]:
        for job in JOBS:
            often = job in OFTEN if wheel in ENDS else job not in ELSEWHERE
            yield pytest.param(wheel, job, id=f"{wheel[6:]}-{job}", marks=[] if often else [pytest.mark.long])


def check_fits(run):
    assert run.verdict == "fits", run.explain()
    assert run.status == 0 and run.report["exit_status"] == 0, run.explain()
    assert run.report["out_of_memory"] is None, run.explain()
    assert run.report["coverage"]["refused_calls"] == [], run.explain()
    assert run.report["steps"]["seen"] >= 1, run.explain()
    assert [found for found in run.report["findings"] if found["severity"] != "hint"] == [], run.explain()
    peak = run.report["peak"]
    assert 0 < peak["allocated_bytes"] <= peak["reserved_bytes"] <= peak["device_bytes"], run.explain()
    assert peak["device_bytes"] <= run.report["gpu"]["total_bytes"], run.explain()


def check_out_of_memory(run, job):
    assert run.verdict == "out_of_memory", run.explain()
    assert run.status == 10, run.explain()
    oom = run.report["out_of_memory"]
    assert oom["at"]["file"].endswith(f"{job}.py"), run.explain()
    assert "out of memory" in oom["message"], run.explain()
    if job == "memory_fraction":
        assert oom["cause"] == "memory_fraction_limit" and "allowed" in oom["message"], run.explain()
    else:
        assert oom["requested_bytes"] > oom["free_bytes"], run.explain()


def known_peak(wheel, job):
    """The peak of an earlier run, or None."""
    with open(ROOT / "bench/results/wheels.csv", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if (row["wheel"], row["job"]) == (wheel, job) and job not in OWN_LIMITS:
                return int(row["peak_device_bytes"])
    return None


def whole_run(tonnage, wheel, job):
    """The run that shows what the job needs, and whether its card was just above that."""
    known = known_peak(wheel, job)
    if known is not None:
        run = tonnage(wheel, f"jobs/{job}.py", GPU, memory_option(known + 2 * MIB), ALL)
        if run.verdict == "fits" and run.device_bytes == known:
            return run, True
    return tonnage(wheel, f"jobs/{job}.py", GPU, LARGE, ALL), False


def needed_bytes(tonnage, wheel, job, large):
    """What the card must hold for this job, from runs on a large card."""
    if job == "retry_smaller":
        least = tonnage(wheel, [f"jobs/{job}.py", *LEAST_BATCH], GPU, LARGE, ALL)
        check_fits(least)
        assert least.device_bytes < 0.5 * large.device_bytes, least.explain()
        return least.device_bytes
    if job == "memory_fraction":
        return int(large.report["peak"]["reserved_bytes"] / FRACTION)
    return large.device_bytes


def check_handled(run, job):
    """The failed tries of a program that retries are counted with their site, and are not the verdict."""
    handled = run.report["handled_out_of_memory"]
    assert sum(site["count"] for site in handled) >= 1, run.explain()
    assert all(site["file"].endswith(f"{job}.py") for site in handled), run.explain()
    assert "batch 128 is too large" in run.stdout and "trained with batch 32" in run.stdout, run.explain()


@pytest.fixture
def record(request):
    """record(name, value): a property of this test in pytest's JUnit file."""
    return lambda name, value: request.node.user_properties.append((name, value))


@pytest.mark.parametrize("wheel, job", list(cases()))
def test_verdict(tonnage, record, wheel, job):
    program = f"jobs/{job}.py"
    record("wheel", wheel)
    record("job", job)
    large, just_above = whole_run(tonnage, wheel, job)
    check_fits(large)
    assert large.report["steps"]["stopped"] == "end", large.explain()
    assert large.report["framework"]["torch"].split("+")[0] == wheel[6:]
    assert large.report["handled_out_of_memory"] == [], large.explain()
    record("peak_device_bytes", large.device_bytes)
    record("seconds", round(large.report["host"]["seconds"], 1))
    check_categories(large)
    needed = needed_bytes(tonnage, wheel, job, large)
    record("needed_bytes", needed)

    enough = large if just_above else tonnage(wheel, program, GPU, memory_option(needed + 2 * MIB), ALL)
    record("verdict_just_above", enough.verdict)
    check_fits(enough)
    assert enough.device_bytes <= needed + 2 * MIB
    if job == "retry_smaller":
        check_handled(enough, job)

    short = tonnage(wheel, program, GPU, memory_option(TOO_LITTLE.get(job, 0.8) * needed))
    record("verdict_at_80_percent", short.verdict)
    check_out_of_memory(short, job)
    check_categories(short)
