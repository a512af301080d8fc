# SPDX-License-Identifier: Apache-2.0
"""Categories equal what the programs hold by their own count (programs/census.py). That they add up, and have lines, is
looked at with every verdict (test_verdicts.py)."""

import json
import pathlib

import pytest
from conftest import ENDS, MAIN, MIB, check_categories

FORKED = True  # ../fork_servers.py

HERE = pathlib.Path(__file__).parent
JOBS = sorted(path.stem for path in (HERE / "jobs").glob("*.py"))
OFTEN = ["gan", "generate", "gpt2", "hf_trainer", "lightning_trainer", "peft_lora"]
# Between two counts: during a backward pass some gradients are there, in the first update some of the state.
GROWING = {"gradients": ("backward",), "optimizer_state": ("optimizer",), "parameters": ("build", "load")}

EMA = """\
import copy, torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(512, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for mine, theirs in zip(average.parameters(), model.parameters()):
            mine.lerp_(theirs, 0.1)
"""


def check_census(run):
    assert run.verdict == "fits", run.explain()
    check_categories(run)
    rows = [json.loads(line.split(" ", 1)[1]) for line in run.stdout.splitlines() if line.startswith("census ")]
    peak = run.report["at_peak"]
    for category, phases in GROWING.items():
        counted, held = {row[category] for row in rows}, peak["by_category"][category]
        if held not in counted:
            assert peak["phase"] in phases and 0 <= held <= max(counted), (category, counted, run.explain())
    return rows


_counted = {}  # of jobs: one run serves all that is asked of it


def counted(tonnage, job):
    if job not in _counted:
        _counted[job] = tonnage("torch-2.11.0", ["programs/census.py", str(HERE / f"jobs/{job}.py")], "--gpu=a100-80", "--steps=all")
    return _counted[job]


@pytest.mark.parametrize("job", [job if job in OFTEN else pytest.param(job, marks=pytest.mark.long) for job in JOBS])
def test_categories_are_what_the_program_holds(tonnage, job):
    """Parameters and optimizer state at every peak; gradients where the peak lies outside of a backward pass."""
    run = counted(tonnage, job)
    rows = check_census(run)
    if len(rows) > 1:
        assert run.report["at_peak"]["by_category"]["parameters"] > 0, run.explain()


def test_a_key_value_cache_is_held_by_its_line(tonnage):
    run = counted(tonnage, "generate")
    layers, batch, heads, dimension, itemsize, tokens = 8, 80, 8, 128, 2, 95
    token = batch * heads * dimension * itemsize  # of the keys, or the values, of one layer
    lines = [row for row in run.report["at_peak"]["holders"] if row["category"] == "temporaries"]
    held = sum(row["bytes"] for row in lines if row["file"].endswith("cache_utils.py"))
    # The last layer's values stand there twice: as they were, and with the new token.
    assert held == 2 * layers * tokens * token + (tokens - 1) * token, run.explain()


LATE_CACHE = """\
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    model(torch.ones(16384, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
for count in range(1, 8):
    with torch.no_grad():
        torch.empty(count * 60 << 20, dtype=torch.uint8, device="cuda")  # in no piece of the cache; less than the peak of the training
        for _ in range(4000):  # a window of the history is full, and emptied
            torch.ones(1, device="cuda")
        model(torch.ones(8, 1024, device="cuda"))
"""


def test_on_an_unlimited_card_the_peak_is_of_what_was_allocated(tonnage, tmp_path):
    """A cache that grows later shows nothing, and the searches for changes go by what the peak was made of."""
    program = tmp_path / "cache.py"
    program.write_text(LATE_CACHE)
    run = tonnage("torch-2.11.0", [str(program)], "--gpu=a100-80", "--memory=8TiB", "--steps=all")
    assert run.verdict == "fits" and run.report["at_peak"]["by_category"]["activations"] >= 6 * 64 * MIB, run.explain()


FULL_FIRST_STEP = """
import torch
net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(12):
    for _ in range(21000 if step == 0 else 0):  # all that a window of the record holds
        torch.empty(1, device="cuda")
    optimizer.zero_grad()
    net(torch.ones(8192 if step == 0 else 64, 1024, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_the_record_of_the_peak_is_not_replaced_by_that_of_a_later_step(tonnage):
    """On an unlimited card what is reserved in the next step is cache."""
    run = tonnage("torch-2.11.0", ["-c", FULL_FIRST_STEP], "--memory=1TiB")
    categories = run.report["at_peak"]["by_category"]
    assert categories["activations"] >= 7 * (32 << 20), run.explain()


def test_the_copy_of_an_average_is_parameters(tonnage, tmp_path):
    program = tmp_path / "ema.py"
    program.write_text(EMA)
    run = tonnage("torch-2.11.0", ["programs/census.py", str(program)], "--gpu=a100-80", "--steps=all")
    rows = check_census(run)
    one = 8 * (1024 * 1024 + 1024) * 4
    assert rows[-1]["parameters"] == 2 * one and run.report["at_peak"]["by_category"]["parameters"] == 2 * one


# Counted by hand, in MiB, from programs/recomputed.py: a block takes in 32 and gives out 32; between its matrices are 128 before and 128 behind
# GELU. All peaks lie in the backward pass of the last block's second matrix, when the loss has let go of the model's output.
BETWEEN, THROUGH, BLOCKS = 128, 32, 8
KEPT = {
    "none": BLOCKS * 2 * BETWEEN + (BLOCKS - 1) * THROUGH,  # what the first one takes in is an input
    "reentrant": BLOCKS * THROUGH + 2 * BETWEEN,  # what they take in (it wants a gradient here), and the last one's, computed again
    "full": (BLOCKS - 1) * THROUGH + 2 * BETWEEN,
    "selective": BLOCKS * (BETWEEN + THROUGH) + BETWEEN,  # what each matrix gave out, and GELU's of the last one, computed again
}
TWO_SCALARS = 2 * 4  # the loss and its gradient


@pytest.mark.parametrize("way", KEPT)
def test_what_checkpoints_keep_and_compute_again_are_activations(tonnage, way):
    run = tonnage(MAIN, ["programs/recomputed.py", way], "--gpu=a100-80", "--steps=all")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    held = run.report["at_peak"]["by_category"]
    again = way == "reentrant"  # to the block's end, so that its output is there, too
    assert held["activations"] == KEPT[way] << 20, (KEPT[way], run.explain())
    assert held["inputs"] == (0 if again else THROUGH << 20), run.explain()
    gradients = BETWEEN + THROUGH  # what goes out of the matrix and what comes in
    assert held["temporaries"] == (gradients + again * THROUGH << 20) + TWO_SCALARS, run.explain()


# PyTorch before 2.8 does not tell whether what a checkpoint keeps was packed by somebody's hooks, so it is not read there.
@pytest.mark.parametrize("way, environment", [*(("selective", environment) for environment in ENDS), ("full", ENDS[-1])])
def test_what_checkpoints_keep_with_other_wheels(tonnage, way, environment):
    run = tonnage(environment, ["programs/recomputed.py", way], "--gpu=a100-80", "--steps=all")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert run.report["at_peak"]["by_category"]["activations"] == KEPT[way] << 20, (KEPT[way], run.explain())


def test_what_checkpoints_keep_are_activations_where_a_forward_runs_out(tonnage):
    """The context, the library, the model, the input and six blocks' products are there; the seventh's first finds no room."""
    run = tonnage(MAIN, ["programs/recomputed.py", "selective"], "--gpu=a100-80", "--memory=1750MiB")
    assert run.verdict == "out_of_memory", run.explain()
    held = run.report["at_peak"]["by_category"]
    kept, rest = divmod(held["activations"] >> 20, BETWEEN + THROUGH)
    assert kept >= 4 and rest in (0, BETWEEN), run.explain()
    assert held["temporaries"] <= BETWEEN << 20, run.explain()  # GELU's, of the block at work


def test_parameters_may_change_places(tonnage):
    """torch.utils.swap_tensors refuses tensors that somebody refers to weakly; who looks at them must not be that one."""
    run = tonnage(MAIN, "programs/swapped.py", "--steps=all")
    assert (run.status, run.verdict) == (0, "fits") and "swapped" in run.stdout, run.explain()
    held = run.report["at_peak"]["by_category"]
    assert (held["parameters"], held["optimizer_state"]) == (2 * 1001 * 1000 * 8, 2 * 2 * 1001 * 1000 * 8), run.explain()
