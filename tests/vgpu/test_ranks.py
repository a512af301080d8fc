# SPDX-License-Identifier: Apache-2.0
"""Several ranks on one machine, started by the unmodified torchrun: collectives move what they have to, what each rank holds
equals a count by hand, and ranks that wait for ever, die or run out of memory are named."""

import json
import pathlib
import re
import subprocess
import sys
import time

import pytest
from conftest import ENDS, MAIN, TONNAGE, free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "page"))
import page_rules  # noqa: E402
import rank_formulas as by_hand  # noqa: E402  (conftest has put bench/ on the path)

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/ranks"
THREADS = {"OMP_NUM_THREADS": "1"}
CARDS = "--gpu=rtx4090"
FORKED = True  # ../fork_servers.py


@pytest.fixture
def ranks(tonnage):
    """ranks(N, program, *words): the program under `torchrun --nproc-per-node N` on N cards."""

    def run(count, program, *words, environment=MAIN, options=()):
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), str(PROGRAMS / program), *words]
        return tonnage(environment, command, f"--gpus={count}", CARDS, *options, env=THREADS)

    return run


@pytest.mark.parametrize("environment, count", [(MAIN, 2), (MAIN, 4), ("torch-2.15.0", 2)])
def test_collectives_move_what_they_have_to(ranks, environment, count):
    run = ranks(count, "collectives.py", options=["--steps=all"], environment=environment)
    assert run.status in (0, 12), run.explain()  # 12: it trains nothing
    for rank in range(count):
        assert f"rank {rank} got all" in run.stdout, run.explain()
    assert not run.report["coverage"]["refused_calls"], run.explain()


# ---- hand counts (bench/rank_formulas.py) ----


def three_of(held):
    return held["parameters"], held["gradients"], held["optimizer_state"]


COUNTED = {"ddp": by_hand.replicated, "ddp_view": by_hand.replicated, "fsdp1": by_hand.flat, "fsdp2": by_hand.sharded_by_rows, "fsdp2 tied": by_hand.tied_by_rows,
           "fsdp1 tied": by_hand.tied_flat, "hybrid": by_hand.hybrid, "tp": by_hand.tensor_parallel, "tp2": by_hand.tensor_parallel_of_two, "pipeline": by_hand.stage, "ends": by_hand.stage_with_ends,
           "pipeline2": by_hand.stage_of_two, "zero": by_hand.zero_redundancy}
SHORT_BLOCKS = 8  # of programs/ranks/sharded.py
SHORT = {2: ("ddp", "ddp_view", "fsdp1", "fsdp2", "tp", "pipeline", "zero"), 4: ("fsdp2", "hybrid")}
COUNTS = [pytest.param(way, count, marks=() if way in SHORT[count] else pytest.mark.long) for count in SHORT for way in COUNTED]


@pytest.mark.parametrize("way, count", COUNTS)
def test_what_each_rank_holds_equals_a_count_by_hand(ranks, way, count):
    short = count == 2  # of four, each has so little of the short model that its peak lies elsewhere
    run = ranks(count, "sharded.py", *way.split(), *["short"] * short, options=["--steps=all"])
    check_counts(run, way, count, short)


def counted(way, rank, count, short):
    """By the formulas; they are of 24 blocks."""
    with pytest.MonkeyPatch.context() as patch:
        if short:
            patch.setattr(by_hand, "BLOCKS", SHORT_BLOCKS)
            patch.setattr(by_hand, "SHAPES", by_hand.block() * SHORT_BLOCKS)
        return COUNTED[way](rank, count)


def check_counts(run, way, count, short):
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    rows = run.report["ranks"]
    assert [row["rank"] for row in rows] == list(range(count)), run.explain()
    assert [row["card"] for row in rows] == list(range(count)), run.explain()
    for row in rows:
        held = row["at_peak"]["by_category"]
        assert sum(held.values()) == row["peak"]["device_bytes"], run.explain()
        assert three_of(held) == counted(way, row["rank"], count, short), (row["rank"], run.explain())
        assert held["communication"] > 0, run.explain()
    cards = run.report["cards"]
    assert [card["peak"]["device_bytes"] for card in cards] == [row["peak"]["device_bytes"] for row in rows]
    assert cards[0]["at_peak"]["by_category"] == rows[0]["at_peak"]["by_category"], run.explain()


@pytest.mark.parametrize("count, adapters", [(2, 15), pytest.param(4, 15, marks=pytest.mark.long), *(pytest.param(count, 1023, marks=pytest.mark.long) for count in (2, 4))])
def test_qlora_under_fsdp(ranks, count, adapters):
    """Gradients and state are the adapters' parts alone, of which the last rank's have fewer rows (neither 15 nor 1023 divides). With few adapters the peak lies in the
    backward pass, where gradients of the last blocks are there; with many in the update, where all are."""
    run = ranks(count, "qlora.py", str(adapters), environment="prog-torchtune", options=["--steps=all"])
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    for row in run.report["ranks"]:
        found, expected = three_of(row["at_peak"]["by_category"]), by_hand.qlora(adapters, row["rank"], count)
        assert (found[0], found[2]) == (expected[0], expected[2]), (row["rank"], expected, run.explain())
        blocks, rest = divmod(found[1], expected[1] // by_hand.BLOCKS)
        assert rest == 0 and 0 < blocks <= by_hand.BLOCKS, (row["rank"], expected, run.explain())
        assert blocks == by_hand.BLOCKS or adapters == 15, (row["rank"], expected, run.explain())


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.long)])
def test_data_parallel_on_several_cards(tonnage, count):
    """Card 0 has the model, its gradients, which the program keeps between steps, and the state; each other one copies of the parameters, which are not the
    program's own, and gradients of these."""
    run = tonnage(MAIN, [str(PROGRAMS / "data_parallel.py")], f"--gpus={count}", CARDS, "--steps=all")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    held = [card["at_peak"]["by_category"] for card in run.report["cards"]]
    assert [three_of(each) for each in held] == [by_hand.data_parallel(card, count) for card in range(count)], run.explain()
    whole = by_hand.replicated(0, 1)[0]
    for other in held[1:]:
        assert whole < other["temporaries"] < 2 * whole, run.explain()


def test_the_page_counts_what_the_report_counts(ranks, tmp_path):
    """NCCL's memory is no block of PyTorch's, and stands in one category with DistributedDataParallel's buckets. So on the page of the
    run, with its record, and on that of its JSON, without."""
    live, later, report = (tmp_path / name for name in ("live.html", "later.html", "again.json"))
    run = ranks(2, "sharded.py", "ddp", "short", options=["--steps=all", f"--html={live}"])
    assert run.verdict == "fits", run.explain()
    counted = {name: size for name, size in run.report["at_peak"]["by_category"].items() if size}
    assert sum(counted.values()) == run.report["peak"]["device_bytes"], run.explain()
    report.write_text(json.dumps(run.report))
    subprocess.run([TONNAGE, "report", report, "--html", later], check=True, capture_output=True, timeout=60)
    for page in live, later:
        data = page_rules.data_of(page.read_text())
        assert list(page_rules.complaints(data)) == [], page.name
        column = data["moments"][0]["column"]
        held = {name: sum(values[: column + 1]) for name, values in data["timeline"]["bytes"].items()}
        assert {name: size for name, size in held.items() if size} == counted, page.name
        own = sum(holder["bytes"] for holder in run.report["at_peak"]["holders"] if holder["category"] == "communication")
        assert 0 < own == counted["communication"] - data["card"]["communication_bytes"] < counted["communication"], page.name
        assert [row["peak_taken_bytes"] for row in data["regions"]] == [row["peak_taken_bytes"] for row in run.report["regions"]]


@pytest.mark.parametrize("stage, count, bucket", [
    (3, 2, by_hand.LARGEST_BUCKET), *(pytest.param(stage, count, bucket, marks=pytest.mark.long) for stage in (1, 2, 3) for count in (2, 4)
                              for bucket in (by_hand.SMALL_BUCKET, by_hand.LARGEST_BUCKET) if (stage, count, bucket) != (3, 2, by_hand.LARGEST_BUCKET))])
def test_deepspeed(ranks, stage, count, bucket):
    """The bucket is communication."""
    run = ranks(count, "deepspeed_zero.py", str(stage), str(bucket), environment="prog-ray", options=["--steps=all"])
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    for row in run.report["ranks"]:
        held = row["at_peak"]["by_category"]
        assert three_of(held) == by_hand.deepspeed(stage, bucket, row["rank"], count), (row["rank"], run.explain())
        if bucket == by_hand.LARGEST_BUCKET:
            assert held["communication"] >= 4 * bucket, run.explain()
    found = [finding for finding in run.report["findings"] if finding["id"] == "zero_buckets"]
    assert len(found) == (bucket == by_hand.LARGEST_BUCKET), run.explain()
    assert "reduce_bucket_size" in run.stderr or not found, run.explain()


@pytest.mark.parametrize("stage", [2, *(pytest.param(stage, marks=pytest.mark.long) for stage in (1, 3))])
def test_deepspeed_in_sixteen_bits(tonnage, stage):
    """By its own launcher. It adds up over all gradients and ranks whether one is not finite: they are, and no step is skipped."""
    program = [str(PROGRAMS / "deepspeed_zero.py"), str(stage), "1000000", "bf16"]
    run = tonnage("prog-ray", ["-m", "deepspeed.launcher.runner", f"--master_port={free_port()}", "--num_gpus", "2", *program], "--gpus=2", CARDS, "--steps=all", env=THREADS)
    assert (run.status, run.verdict, run.report["bound"]) == (0, "fits", None), run.explain()
    assert run.stdout.count("steps skipped: 0") == 2, run.explain()
    for row in run.report["ranks"]:
        assert row["at_peak"]["by_category"]["optimizer_state"] == by_hand.deepspeed(stage, by_hand.SMALL_BUCKET, row["rank"], 2)[2], run.explain()


def offloaded(stage, what, count):
    """Numbers of parameters on a card whose optimizer lives on the host (stages 1 and 2 keep the model, stage 3 its part, or with `parameters`
    none of it beside what is gathered). The optimizer's own part of the parameters, the gradients that it takes and its state are not there."""
    if stage < 3:
        return sum(map(by_hand.numel, by_hand.SHAPES))
    return 0 if "parameters" in what else sum(-(-by_hand.numel(shape) // count) for shape in by_hand.SHAPES)


OFFLOADED = [(3, ["offload", "parameters"], 2), *(pytest.param(stage, ["offload"], count, marks=pytest.mark.long) for stage in (1, 2, 3) for count in (2, 4)),
             pytest.param(3, ["offload", "parameters"], 4, marks=pytest.mark.long)]


@pytest.mark.parametrize("stage, what, count", OFFLOADED)
def test_deepspeed_with_the_optimizer_on_the_host(ranks, stage, what, count):
    run = ranks(count, "deepspeed_zero.py", str(stage), "1000000", *what, environment="prog-ray", options=["--steps=all"])
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert run.stdout.count("steps skipped: 0") == count, run.explain()
    for row in run.report["ranks"]:
        held = row["at_peak"]["by_category"]
        assert (held["parameters"], held["optimizer_state"]) == (4 * offloaded(stage, what, count), 0), run.explain()
        if stage == 3:  # all layers stay whole after the forward pass (stage3_max_live_parameters is larger), and may lie in the buffer, too
            weights = sum(by_hand.numel(shape) for shape in by_hand.SHAPES if len(shape) == 2)
            assert 4 * weights <= held["gathered"] <= 2 * 4 * sum(2 * -(-by_hand.numel(shape) // 2) for shape in by_hand.SHAPES), run.explain()
            assert held["activations"] < 4 * weights / 2, run.explain()
            assert run.report["facts"]["sharded"], run.explain()
        else:
            assert held["gathered"] == 0, run.explain()


@pytest.mark.parametrize("environment", ENDS)
def test_other_wheels(ranks, environment):
    run = ranks(2, "sharded.py", "fsdp2" if environment != "torch-2.6.0" else "ddp", "short", environment=environment)
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


def test_a_card_that_nobody_uses_differs_by_what_the_other_holds(tonnage):
    """The difference is all that the used card holds; the category that it is said to be mostly of is more than half of it."""
    program = "import torch; kept = torch.empty(1 << 30, dtype=torch.uint8, device='cuda:1'); kept.zero_()"
    run = tonnage(MAIN, ["-c", program], "--gpus=2", CARDS)
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert re.search(r"they differ by 1\.\d+ GiB, mostly (?!CUDA context)[a-z ]+: 1\.00 GiB", " ".join(run.stderr.split())), run.explain()


def test_what_cards_differ_in_where_two_processes_share_one(ranks):
    """What the two hold there is not told apart, as it is on the other card: it differed in all of it."""
    run = ranks(2, "on_first_card.py")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert [card["at_peak"]["by_category"]["parameters"] is None for card in run.report["cards"]] == [True, False], run.explain()
    assert re.search(r"they differ by \d+\.\d MiB, mostly CUDA context: ", " ".join(run.stderr.split())), run.explain()


def test_ranks_that_never_talk_are_waited_for(ranks):
    """One rank has seen enough before the other has begun: the run goes on until both have."""
    run = ranks(2, "never_talk.py")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    first, second = (card["peak"]["device_bytes"] for card in run.report["cards"])
    assert first > second > 0, run.explain()
    # The report is about the first rank, which holds more; the second one settled last, and knows what was not seen.
    [left] = run.report["steps"]["not_seen"]
    assert re.match(r"everything after step \d+ \(the loop around .*never_talk.py:\d+ has no data loader\)", left), run.explain()


def test_a_rank_that_waits_makes_room_for_the_one_it_waits_for(ranks):
    """Payloads of small broadcasts lie in few places until they are taken, which one that waits does, too (DeepSpeed's ZeRO-2 hung here)."""
    run = ranks(2, "ahead_of_root.py")
    assert (run.status, run.stdout.count("all there")) == (0, 2), run.explain()


@pytest.mark.parametrize("way", ["sends", "receives", "collectives"])
def test_a_host_does_not_wait_for_ranks_that_are_far_behind(ranks, way):
    """NCCL puts an operation on a stream and returns: what blocks is the card. The hosts meet elsewhere here, in a file."""
    run = ranks(2, "far_ahead.py", way, options=["--steps=all"])
    assert (run.status in (0, 12), run.stdout.count("all there")) == (True, 2), run.explain()


@pytest.mark.parametrize("count", [2, 3])
def test_a_group_may_be_larger_than_the_room_between_two_ranks(ranks, count):
    """Each would else wait for room for its sends before it comes to the receives that make it."""
    run = ranks(count, "large_group.py")
    assert (run.status, run.stdout.count("all there")) == (0, count), run.explain()


# ---- bad ends ----

TWO_AND_FOUR = pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.long)])


def line_of(text):
    lines = (PROGRAMS / "ending.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def mentions(process, folder):
    """A process of the run has it in its environment; one that was forked for it has its files mapped."""
    try:
        return f"TONNAGE_RUN={folder}".encode() in (process / "environ").read_bytes() or folder.name in (process / "maps").read_text()
    except OSError:
        return False  # it has ended meanwhile, or is somebody else's


def nothing_is_left(run):
    """No process of the run, no folder, no shared memory."""
    folder = pathlib.Path(re.search(r"^run (\S+) at", run.stdout, re.MULTILINE)[1])
    assert not [path for path in pathlib.Path("/proc").glob("[0-9]*") if mentions(path, folder)], run.explain()
    assert not folder.exists() and not (pathlib.Path("/dev/shm") / folder.name).exists(), run.explain()


def ended(ranks, count, way):
    run = ranks(count, "ending.py", way)
    nothing_is_left(run)
    return run


# What the last rank does wrong: what it waits in and at which line, and the same of the others.
HANGS = {
    "skip": ("broadcast", "# has skipped", "all_reduce", "# waits"),
    "shapes": ("all_reduce", "# of another size", "all_reduce", "# waits"),
    "order": ("all_reduce", "# waits", "all_reduce", "# waits"),
    "exits": (None, "os._exit", "all_reduce", "# waits"),
    "receive": ("recv", "# has sent nothing", "recv", "# waits for a send"),
    "send": ("send", "# has sent to nobody", "all_reduce", "# waits"),
}


@TWO_AND_FOUR
@pytest.mark.parametrize("way", HANGS)
def test_ranks_that_wait_for_ever_are_named(ranks, way, count):
    """Each with its operation and line; of several the odd one stands first."""
    run = ended(ranks, count, way)
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    hang, last = run.report["hang"], count - 1
    own, at, others, others_at = HANGS[way]
    found = {row["rank"]: row for row in [hang, *hang["waiting"]]}
    assert sorted(found) == list(range(count)), run.explain()
    assert count == 2 or way == "receive" or hang["rank"] == last, run.explain()
    assert found[last]["operation"] == own, run.explain()
    assert abs(found[last]["at"]["line"] - line_of(at)) <= 1, run.explain()  # who comes second may wait in the call, the first one in the line after it
    for rank in range(last):
        if way == "receive" and found[rank]["operation"] == "init":
            continue  # it waits for the last one to come to the communicator of the two
        assert found[rank]["operation"] == others, run.explain()
        assert abs(found[rank]["at"]["line"] - line_of(others_at)) <= 1, run.explain()
    if way == "shapes":
        assert "4194304" in run.stderr and "4194308" in run.stderr, run.explain()
    assert run.report["dead"] is None, run.explain()


def test_a_send_of_another_length_is_named(ranks):
    """The hundredth of a pair, long after the sender's host has gone on to a collective. Within ten seconds of the fault."""
    run = ended(ranks, 2, "lengths")
    over = time.time()
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    hang = run.report["hang"]
    assert (hang["rank"], hang["operation"]) == (0, "recv"), run.explain()
    assert "recv of 16 bytes" in run.stderr and "send of 20" in run.stderr, run.explain()
    assert [row["operation"] for row in hang["waiting"]] == ["all_reduce"], run.explain()
    began = float(re.search(r"^run \S+ at (\S+)", run.stdout, re.MULTILINE)[1])
    assert over - began < 10, run.explain()


# How it ends (signal, status), and the line. The launcher may end a rank that is busy with its own exception, when another has failed of it.
BY_LAUNCHER = (15, None)
DEATHS = {
    "killed": ([(9, None)], None),
    "raises": ([(None, 1), BY_LAUNCHER], "# nobody catches it"),
    "slowly": ([BY_LAUNCHER], "# and is long in ending"),
}


@TWO_AND_FOUR
@pytest.mark.parametrize("way", DEATHS)
def test_a_rank_that_dies_is_named(ranks, way, count):
    run = ended(ranks, count, way)
    assert (run.status, run.verdict) == (1, "failed"), run.explain()  # torchrun's own status
    ends, at = DEATHS[way]
    dead = run.report["dead"]
    assert dead["rank"] == count - 1 and (dead["signal"], dead["status"]) in ends, run.explain()
    assert (dead["at"] and dead["at"]["line"]) == (at and line_of(at)), run.explain()
    assert f"rank {count - 1} " in run.stderr, run.explain()
    assert not at or "a mistake of one rank" in run.report["exception"]["text"], run.explain()


def test_ranks_that_fail_before_they_meet_say_why(ranks):
    """Not only that the launcher has seen them fail."""
    run = ranks(2, "ending.py", "early")
    assert (run.status, run.verdict) == (1, "failed"), run.explain()
    exception = run.report["exception"]
    assert exception["text"] == "RuntimeError: a mistake of every rank", run.explain()
    assert exception["at"]["line"] == line_of("# before there is a group"), run.explain()


def test_a_killed_launcher_leaves_nothing(ranks):
    run = ended(ranks, 2, "launcher")
    assert (run.status, run.verdict) == (137, "failed"), run.explain()


@TWO_AND_FOUR
def test_one_rank_out_of_memory_is_the_verdict(ranks, count):
    run = ended(ranks, count, "memory")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    out = [False] * (count - 1) + [True]
    assert [row["out_of_memory"] for row in run.report["ranks"]] == out, run.explain()
    assert [card["out_of_memory"] for card in run.report["cards"]] == out, run.explain()
    assert run.report["out_of_memory"]["requested_bytes"] == 120 << 30, run.explain()
    assert run.report["dead"]["at"]["line"] == line_of("# more than the card has"), run.explain()


def test_children_that_nobody_waits_for_are_known(tonnage, tmp_path):
    """A launcher that waits for its ranks in order does not learn that the last one has died; the run does."""
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import os, subprocess, sys; base = dict(os.environ, MASTER_ADDR='localhost', MASTER_PORT='29571', WORLD_SIZE='2')\n"
        "ranks = [subprocess.Popen([sys.executable, sys.argv[1], 'killed'], env={**base, 'RANK': r, 'LOCAL_RANK': r}) for r in '01']\n"
        "for rank in ranks: rank.wait()")
    run = tonnage(MAIN, [str(launcher), str(PROGRAMS / "ending.py")], "--gpus=2", CARDS, env=THREADS, launches=True)
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    assert (run.report["dead"]["rank"], run.report["dead"]["signal"]) == (1, 9), run.explain()
    assert (run.report["hang"]["rank"], run.report["hang"]["waiting"][0]["rank"]) == (1, 0), run.explain()


def test_waiting_when_the_interpreter_has_gone(ranks):
    """The hook's function that says where a rank waits is not called then: it lay in freed memory."""
    run = ranks(2, "late.py")
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    assert run.report["dead"] is None and run.report["hang"]["waiting"][0]["rank"] == 0, run.explain()
