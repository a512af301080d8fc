# SPDX-License-Identifier: Apache-2.0
"""What comes after training is seen within the default limits: evaluation, saving, the program's own end; and growth."""

import pytest
from conftest import HERE, MIB
from fork_servers import LIBRARIES

FORKED = True  # ../fork_servers.py

WHEEL = "torch-2.11.0"


def line_of(program, text="# out of memory"):
    lines = (HERE / "programs" / program).read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def not_seen(run):
    return run.report["steps"]["not_seen"]


def check_fast_forwarded(run):
    assert run.status == 0 and run.verdict == "fits" and run.report["steps"]["stopped"] == "settled", run.explain()


def test_an_evaluation_after_the_second_epoch(tonnage):
    run = tonnage(WHEEL, "programs/late_evaluation.py")
    assert run.verdict == "out_of_memory" and run.status == 10, run.explain()
    at = run.report["out_of_memory"]["at"]
    assert at["file"].endswith("late_evaluation.py") and at["line"] == line_of("late_evaluation.py"), run.explain()
    assert any("batches of epoch 1" in line for line in not_seen(run)), run.explain()


def test_saving_at_the_end(tonnage):
    run = tonnage(WHEEL, "programs/save_all_at_once.py", "--memory=2GiB")
    assert run.verdict == "out_of_memory" and run.status == 10, run.explain()
    at = run.report["out_of_memory"]["at"]
    assert at["file"].endswith("save_all_at_once.py") and at["line"] == line_of("save_all_at_once.py"), run.explain()
    check_fast_forwarded(tonnage(WHEEL, "programs/save_all_at_once.py", "--memory=4GiB"))


@pytest.mark.parametrize("form", ["loader", "loop"])
def test_random_lengths(tonnage, form):
    many = tonnage(WHEEL, ["programs/random_lengths.py", form, "300"])
    assert many.report["peak"]["allocated_bytes"] > (1 << 16) * (256 + 1024) * 4, "the batch of step 90"
    assert any("shapes were still changing" in line for line in not_seen(many)), many.explain()
    few = tonnage(WHEEL, ["programs/random_lengths.py", form, "8"])
    assert any("a larger one may come later" in line for line in not_seen(few)), few.explain()


def test_a_leak_in_an_endless_loop(tonnage):
    run = tonnage(WHEEL, ["programs/leak.py", "loop"], "--memory=512MiB")
    assert run.verdict == "grows" and run.status == 10, run.explain()
    growth = run.report["growth"]
    assert growth["unit"] == "step" and growth["bytes_per_unit"] == MIB, run.explain()
    full = tonnage(WHEEL, ["programs/leak.py", "loop"], "--memory=512MiB", "--steps=all")
    assert full.verdict == "out_of_memory" and full.report["steps"]["seen"] > 200, full.explain()
    assert abs(growth["full_at"] - full.report["steps"]["seen"]) <= 20, (growth, full.report["steps"])


def test_a_leak_counts_only_as_far_as_the_program_goes(tonnage):
    once = tonnage(WHEEL, ["programs/leak.py", "loader"], "--memory=2GiB")
    assert once.report["growth"]["bytes_per_unit"] == MIB and once.verdict == "fits", once.explain()
    often = tonnage(WHEEL, ["programs/leak.py", "epochs"], "--memory=2GiB")
    assert 1500 < often.report["growth"]["full_at"] < 2000 and often.verdict == "grows", often.explain()


def test_what_an_evaluation_keeps_before_any_training(tonnage):
    """The optimizer is made, and 3,000 batches each keep 1 MiB; 200 of them are looked at, or fewer where they are slow."""
    small, large = (tonnage(WHEEL, ["programs/leak.py", "evaluation"], f"--memory={card}") for card in ("1GiB", "8GiB"))
    assert small.verdict == "grows" and 800 < small.report["growth"]["full_at"] < 1000, small.explain()
    line = line_of("leak.py", "kept.append(net(")  # a function that does not run adds to it, too
    assert f"leak.py:{line}" in " ".join(small.stderr.split()).partition("added at ")[2].split()[0], small.explain()
    words = " ".join(large.stderr.split())
    assert large.verdict == "fits" and "comes to 3." in words and "at the end of what grows" in words, large.explain()
    assert large.report["growth"]["bytes_per_unit"] == MIB and large.report["smallest_gpu"] is not None, large.explain()


@pytest.mark.parametrize("when", ["epoch", "steps"])
def test_hf_trainer(tonnage, when):
    run = tonnage(WHEEL, ["programs/epochs_hf.py", when], imports=LIBRARIES)
    check_fast_forwarded(run)
    assert "checkpoints 3" in run.stdout and "evaluated True" in run.stdout, run.explain()
    assert sum("(evaluation)" in line for line in not_seen(run)) >= 2, run.explain()


@pytest.mark.parametrize("option", ["", "iterable", "accumulate_grad_batches=4",
                                    *(pytest.param(option, marks=pytest.mark.long)
                                      for option in ("val_check_interval=0.5", "limit_train_batches=500"))],
                         ids=lambda option: option or "plain")  # fmt: skip
def test_lightning(tonnage, option):
    run = tonnage(WHEEL, ["programs/epochs_lightning.py", *option.split()])
    check_fast_forwarded(run)
    assert "validated 4 saved 1" in run.stdout, run.explain()


@pytest.mark.parametrize("accumulation", ["1", "4"])
def test_accelerate(tonnage, accumulation):
    run = tonnage(WHEEL, ["programs/epochs_accelerate.py", accumulation])
    check_fast_forwarded(run)
    assert run.stdout.count("updated True evaluated True") == 3 and "saved" in run.stdout, run.explain()
