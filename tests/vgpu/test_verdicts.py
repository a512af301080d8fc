# SPDX-License-Identifier: Apache-2.0
"""Every job gets the right verdict: `fits` on a card just above what it needs, `out_of_memory` with 80 % of that."""

import pathlib

import pytest
from conftest import MIB, memory_option

JOBS = sorted(path.stem for path in (pathlib.Path(__file__).parent / "jobs").glob("*.py"))
# These need another card than "peak" and "80 % of the peak": see their own tests below.
SPECIAL = {"retry_smaller", "memory_fraction"}
ORDINARY = [job for job in JOBS if job not in SPECIAL]
# On the other wheels in `make test`; all the others in `make long`, where the packages are installed.
OTHER_WHEELS = ["torch-2.6.0", "torch-2.15.0"]
OFTEN = ["gpt2", "resnet50", "expandable_segments"]
NEEDS_MORE_PACKAGES = {"hf_trainer", "lightning_trainer", "accelerate_loop", "peft_lora"}
GPU = "--gpu=a100-80"


def cases():
    for job in ORDINARY:
        yield pytest.param("torch-2.11.0", job, id=f"2.11.0-{job}")
    for wheel in OTHER_WHEELS:
        for job in ORDINARY:
            if job not in NEEDS_MORE_PACKAGES:
                marks = [] if job in OFTEN else [pytest.mark.long]
                yield pytest.param(wheel, job, id=f"{wheel[6:]}-{job}", marks=marks)


def check_fits(run):
    assert run.verdict == "fits", run.explain()
    assert run.status == 0 and run.report["exit_status"] == 0, run.explain()
    assert run.report["out_of_memory"] is None, run.explain()
    assert run.report["coverage"]["refused_calls"] == [], run.explain()
    assert run.report["steps"]["seen"] >= 1, run.explain()
    peak = run.report["peak"]
    assert 0 < peak["allocated_bytes"] <= peak["reserved_bytes"] <= peak["device_bytes"], run.explain()
    assert peak["device_bytes"] <= run.report["gpu"]["total_bytes"], run.explain()


def check_out_of_memory(run, job):
    assert run.verdict == "out_of_memory", run.explain()
    assert run.status == 10, run.explain()
    oom = run.report["out_of_memory"]
    assert oom["requested_bytes"] > oom["free_bytes"], run.explain()
    assert oom["at"]["file"].endswith(f"{job}.py"), run.explain()
    assert "out of memory" in oom["message"], run.explain()


@pytest.mark.parametrize("wheel, job", list(cases()))
def test_verdict(tonnage, wheel, job):
    program = f"jobs/{job}.py"
    large = tonnage(wheel, program, GPU, "--memory=80GiB", "--steps=all")
    check_fits(large)
    assert large.report["steps"]["stopped"] == "end", large.explain()
    assert large.report["framework"]["torch"].split("+")[0] == wheel[6:]

    enough = tonnage(wheel, program, GPU, memory_option(large.device_bytes + 2 * MIB), "--steps=all")
    check_fits(enough)
    assert enough.device_bytes <= large.device_bytes + 2 * MIB

    check_out_of_memory(tonnage(wheel, program, GPU, memory_option(0.8 * large.device_bytes)), job)


def test_a_handled_out_of_memory_is_not_the_verdict(tonnage):
    program = "jobs/retry_smaller.py"
    large = tonnage("torch-2.11.0", program, GPU, "--memory=80GiB", "--steps=all")
    check_fits(large)
    assert large.report["handled_out_of_memory"] == [] and "too large" not in large.stdout

    smaller = tonnage("torch-2.11.0", program, GPU, memory_option(0.5 * large.device_bytes), "--steps=all")
    check_fits(smaller)
    assert "batch 256 is too large" in smaller.stdout
    handled = smaller.report["handled_out_of_memory"]
    assert sum(site["count"] for site in handled) >= 1, smaller.explain()
    assert handled[0]["file"].endswith("retry_smaller.py"), smaller.explain()

    hopeless = tonnage("torch-2.11.0", program, GPU, "--memory=600MiB", "--steps=all")
    check_out_of_memory(hopeless, "retry_smaller")


def test_a_memory_fraction_is_a_limit(tonnage):
    program = "jobs/memory_fraction.py"
    large = tonnage("torch-2.11.0", program, GPU, "--memory=80GiB", "--steps=all")
    check_fits(large)
    needed = 2 * large.report["peak"]["reserved_bytes"]  # it asks for half of the card

    check_fits(tonnage("torch-2.11.0", program, GPU, memory_option(needed + 4 * MIB), "--steps=all"))
    limited = tonnage("torch-2.11.0", program, GPU, memory_option(0.8 * needed))
    assert limited.verdict == "out_of_memory" and limited.status == 10, limited.explain()
    assert "allowed" in limited.stderr, limited.explain()
