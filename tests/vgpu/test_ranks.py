# SPDX-License-Identifier: Apache-2.0
"""Several ranks on one machine, started by the unmodified torchrun: collectives move what they have to, what each rank holds
equals a count by hand, and ranks that wait for ever, die or run out of memory are named."""

import math
import os
import pathlib

import pytest
from conftest import ENDS, MAIN

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/ranks"
THREADS = {"OMP_NUM_THREADS": "1"}
CARDS = "--gpu=rtx4090"


@pytest.fixture
def ranks(tonnage):
    """ranks(N, program, *words): the program under `torchrun --nproc-per-node N` on N cards."""

    def run(count, program, *words, environment=MAIN, options=()):
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), str(PROGRAMS / program), *words]
        return tonnage(environment, command, f"--gpus={count}", CARDS, *options, env=THREADS)

    return run


@pytest.mark.parametrize("count", [2, 4])
def test_collectives_move_what_they_have_to(ranks, count):
    run = ranks(count, "collectives.py", options=["--steps=all"])
    assert run.status in (0, 12), run.explain()  # 12: it trains nothing
    for rank in range(count):
        assert f"rank {rank} got all" in run.stdout, run.explain()
    assert not run.report["coverage"]["refused_calls"], run.explain()


# ---- hand counts ----

def shapes(width):
    return [(width, 500), (width,), (500, width), (500,)] * 24


SHAPES = shapes(1001)
UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS = range(4)


def numel(shape):
    return math.prod(shape)


def rows_of(shape, rank, count):
    """Numbers of a rank's part when the first dimension is cut as torch.chunk does: the last parts may be short."""
    each = -(-shape[0] // count)
    return max(0, min(each, shape[0] - rank * each)) * numel(shape[1:])


def sharded_by_rows(rank, count):
    numbers = sum(rows_of(shape, rank, count) for shape in SHAPES)
    return numbers, numbers, 2 * numbers


def flat(rank, count):
    """FSDP1: the parameters of a unit lie in one flat tensor (with use_orig_params off, not padded inside), which is cut into equal,
    padded parts. The padding counts with the tensor whose storage it is."""
    unit = sum(numel(shape) for shape in SHAPES[:4])
    numbers = 24 * -(-unit // count)
    return numbers, numbers, 2 * numbers


def replicated(rank, count):
    numbers = sum(map(numel, SHAPES))
    return numbers, numbers, 2 * numbers


def tensor_parallel(rank, count):
    """Column-wise: rows of weight and bias are cut; row-wise: columns of the weight, and each rank has the bias."""
    numbers = 0
    for index, shape in enumerate(shapes(1000)):  # PyTorch's plans want whole parts
        kind = index % 4
        if kind in (UP_WEIGHT, UP_BIAS):
            numbers += rows_of(shape, rank, count)
        elif kind == DOWN_WEIGHT:
            numbers += shape[0] * rows_of(shape[1:], rank, count)
        else:
            numbers += numel(shape)
    return numbers, numbers, 2 * numbers


COUNTED = {"ddp": replicated, "ddp_view": replicated, "fsdp1": flat, "fsdp2": sharded_by_rows, "tp": tensor_parallel}


COUNTS = [(way, 2) for way in COUNTED] + [pytest.param(way, 4, marks=() if way == "fsdp2" else pytest.mark.long) for way in COUNTED]


@pytest.mark.parametrize("way, count", COUNTS)
def test_what_each_rank_holds_equals_a_count_by_hand(ranks, way, count):
    run = ranks(count, "sharded.py", way, options=["--steps=all"])
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    rows = run.report["ranks"]
    assert [row["rank"] for row in rows] == list(range(count)), run.explain()
    assert [row["card"] for row in rows] == list(range(count)), run.explain()
    for row in rows:
        held = row["at_peak"]["by_category"]
        assert sum(held.values()) == row["peak"]["device_bytes"], run.explain()
        numbers = COUNTED[way](row["rank"], count)
        found = held["parameters"], held["gradients"], held["optimizer_state"]
        scalars = found[2] - 8 * numbers[0]  # AdamW counts steps on the host; `foreach` on the card has none
        assert found[:2] == (4 * numbers[0], 4 * numbers[1]) and scalars == 0, (row["rank"], found, numbers, run.explain())
        assert held["communication"] > 0, run.explain()
    cards = run.report["cards"]
    assert [card["peak"]["device_bytes"] for card in cards] == [row["peak"]["device_bytes"] for row in rows]
    assert cards[0]["at_peak"]["by_category"] == rows[0]["at_peak"]["by_category"], run.explain()


@pytest.mark.parametrize("environment", ENDS)
def test_other_wheels(ranks, environment):
    run = ranks(2, "sharded.py", "fsdp2" if environment != "torch-2.6.0" else "ddp", environment=environment)
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert [row["steps"] for row in run.report["ranks"]] == [4, 4], run.explain()


def test_one_process_with_two_cards(tonnage):
    """nn.DataParallel talks by communicators of one process; such a process is no rank."""
    program = ("import torch; from torch import nn; m = nn.DataParallel(nn.Linear(512, 512).cuda())\n"
               "o = torch.optim.SGD(m.parameters(), 0.1)\n"
               "for _ in range(3): m(torch.randn(8, 512, device='cuda')).sum().backward(); o.step(); o.zero_grad()")
    run = tonnage(MAIN, ["-c", program], "--gpus=2", CARDS)
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert len(run.report["cards"]) == 2 and run.report["ranks"] == [], run.explain()
    assert run.report["at_peak"]["by_category"]["communication"] > 0, run.explain()


# ---- bad ends ----


def line_of(text):
    lines = (PROGRAMS / "ending.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_skipped_collective_is_named(ranks):
    run = ranks(2, "ending.py", "skip")
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    hang = run.report["hang"]
    both = {row["rank"]: (row["operation"], row["at"] and row["at"]["line"]) for row in [hang, *hang["waiting"]]}
    assert {rank: operation for rank, (operation, _) in both.items()} == {0: "all_reduce", 1: "broadcast"}, run.explain()
    assert both[1][1] in (line_of("dist.broadcast"), line_of("# waits")), run.explain()


def test_mismatched_shapes_are_named(ranks):
    run = ranks(2, "ending.py", "shapes")
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    assert run.report["hang"]["operation"] == "all_reduce", run.explain()
    assert run.report["hang"]["at"]["file"].endswith("ending.py"), run.explain()
    assert "4194304" in run.stderr and "4194308" in run.stderr, run.explain()


def test_a_rank_that_left_is_named(ranks):
    run = ranks(2, "ending.py", "exits")
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    assert run.report["hang"]["rank"] == 1, run.explain()
    waiting, = run.report["hang"]["waiting"]
    assert (waiting["rank"], waiting["operation"]) == (0, "all_reduce"), run.explain()
    assert waiting["at"]["line"] == line_of("# waits, too"), run.explain()


def test_a_killed_rank_ends_the_run_and_leaves_nothing(ranks):
    run = ranks(2, "ending.py", "killed")
    assert (run.status, run.verdict) == (1, "failed"), run.explain()  # torchrun's own status
    for row in run.report["ranks"]:
        assert not os.path.exists(f"/proc/{row['pid']}"), run.explain()


def test_one_rank_out_of_memory_is_the_verdict(ranks):
    run = ranks(2, "ending.py", "memory")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert [row["out_of_memory"] for row in run.report["ranks"]] == [False, True], run.explain()
    assert [card["out_of_memory"] for card in run.report["cards"]] == [False, True], run.explain()
    assert run.report["out_of_memory"]["requested_bytes"] == 120 << 30, run.explain()
