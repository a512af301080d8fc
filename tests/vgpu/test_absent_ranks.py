# SPDX-License-Identifier: Apache-2.0
"""Jobs of which not all ranks are run (doc/design/0031-absent-ranks.md): those that are stood in for equal the same ranks really run."""

import pathlib

import pytest
from conftest import ENDS, MAIN, free_port
from test_ranks import SHORT_BLOCKS, check_counts

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs/ranks"
THREADS = {"OMP_NUM_THREADS": "1"}
CARDS = "--gpu=rtx4090"
FORKED = True  # ../fork_servers.py


@pytest.fixture
def job(tonnage):
    """job(N, program, *words): the program under torchrun with N ranks on this node."""

    def run(count, program, *words, options=(), environment=MAIN, launch=("--standalone",)):
        command = ["-m", "torch.distributed.run", *launch, "--nproc-per-node", str(count), str(PROGRAMS / program), *words]
        return tonnage(environment, command, f"--gpus={count}", CARDS, *options, env=THREADS)

    return run


_whole = {}  # jobs of four of which all ranks are run, by what they are: one run serves all that is asked of it


def whole_job(job, program, words, environment=MAIN):
    key = (environment, program, *words)
    if key not in _whole:
        _whole[key] = job(4, program, *words, options=["--steps=all"], environment=environment)
    return _whole[key]


@pytest.mark.parametrize("environment, program, words", [
    (MAIN, "sharded.py", ["ddp"]), (MAIN, "sharded.py", ["fsdp2"]), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        *((MAIN, "sharded.py", way.split()) for way in ("ddp_view", "fsdp1", "fsdp1 tied", "fsdp2 tied", "tp", "tp2", "zero")), ("prog-torchtune", "qlora.py", []),
        *(("prog-ray", "deepspeed_zero.py", [stage, bucket]) for stage in "123" for bucket in ("1000000", "500000000"))))])
def test_ranks_stood_in_for_equal_those_really_run(job, environment, program, words):
    """All of a rank that is run, and the peak of one that is not."""
    some = job(4, program, *words, options=["--steps=all", "--ranks=0,1,3"], environment=environment)
    every = whole_job(job, program, words, environment)
    assert (some.status, every.status) == (0, 0), some.explain() + every.explain()
    found, real = some.report["ranks"], every.report["ranks"]
    assert [row["rank"] for row in found] == [row["rank"] for row in real] == [0, 1, 2, 3], some.explain()
    assert [row["same_as"] for row in found] == [None, None, 0 if words == ["tp2"] else 1, None], some.explain()  # tp2: the first of two scatters
    for one, other in zip(found, real):
        assert one["peak"] == other["peak"], (one["rank"], some.explain(), every.explain())
        if one["same_as"] is None:
            assert one["at_peak"] == other["at_peak"] and one["communication"] == other["communication"], one["rank"]
    assert some.report["peak"] == every.report["peak"], some.explain()
    assert every.report["job"] is None, every.explain()


@pytest.mark.parametrize("words", [["fsdp2"], ["hybrid", "short"]], ids=["fsdp2", "hybrid"])
def test_what_each_of_four_holds_equals_a_count_by_hand(job, words):
    check_counts(whole_job(job, "sharded.py", words), words[0], 4, "short" in words)


@pytest.mark.long
@pytest.mark.parametrize("environment, program, words", [
    *((MAIN, "sharded.py", [way]) for way in ("ddp", "fsdp1", "tp")), *(("prog-ray", "deepspeed_zero.py", [stage, "1000000"]) for stage in "123")])
def test_one_of_two_stands_for_the_other(job, environment, program, words):
    """Nothing proves it with two, so it is a bound: with FSDP1 and ZeRO-1 the second rank has less allocated at its peak than the first. The rank that is run
    is right to the byte, and so is the other one where both do the same."""
    some = job(2, program, *words, options=["--steps=all", "--ranks=0"], environment=environment)
    every = job(2, program, *words, options=["--steps=all"], environment=environment)
    assert (some.status, every.status, some.report["bound"]) == (0, 0, "lower"), some.explain() + every.explain()
    assert [row["same_as"] for row in some.report["ranks"]] == [None, 0], some.explain()
    alike = 2 if words[0] in ("ddp", "tp") else 1
    assert [row["peak"] for row in some.report["ranks"][:alike]] == [row["peak"] for row in every.report["ranks"][:alike]], some.explain() + every.explain()
    assert some.report["ranks"][0]["at_peak"] == every.report["ranks"][0]["at_peak"], some.explain() + every.explain()


@pytest.mark.parametrize("environment, way, count, ranks", [
    (MAIN, "pipeline", 4, "0,1,3"), (MAIN, "interleaved", 4, "0,1,3"), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        (MAIN, "ends", 4, "0,1,3"), (MAIN, "1f1b", 4, "0,1,3"), (MAIN, "pipeline", 4, "0,2"), (MAIN, "pipeline", 2, "0"), (MAIN, "interleaved", 4, "0,1"),
        *((end, "pipeline", 4, "0,1,3") for end in ENDS), (ENDS[1], "interleaved", 4, "0,1,3")))])
def test_stages_of_which_one_is_not_run_equal_those_really_run(job, environment, way, count, ranks):
    """The stage behind is sent by the one that is not run what its representative sends: shapes, and calls of the same bytes."""
    some = job(count, "sharded.py", way, "short", options=["--steps=all", f"--ranks={ranks}"], environment=environment)
    every = job(count, "sharded.py", way, "short", options=["--steps=all"], environment=environment)
    assert (some.status, every.status) == (0, 0), some.explain() + every.explain()
    for one, other in zip(some.report["ranks"], every.report["ranks"], strict=True):
        if one["same_as"] is None:
            assert all(one[what] == other[what] for what in ("peak", "at_peak", "communication")), (one["rank"], some.explain(), every.explain())
        elif way in ("pipeline", "ends") and one["same_as"] > 0 and one["rank"] < count - 1:
            assert one["peak"] == other["peak"], (one["rank"], some.explain(), every.explain())  # a stage in the middle, as the one before
    assert some.report["job"]["proven"] is False and some.report["bound"] == "lower", some.explain()  # the last stage is another one
    assert not some.report["coverage"]["refused_calls"], some.explain()


@pytest.mark.parametrize("launch", ["static", "c10d"])
def test_other_nodes_are_not_waited_for(job, launch):
    """Uneven shards of FSDP2: the last rank has less, those between are proven alike, each figure by hand."""
    words = {"static": ["--node-rank=0", "--master-addr=first.node.invalid", f"--master-port={free_port()}"],
             "c10d": ["--rdzv-backend=c10d", f"--rdzv-endpoint=first.node.invalid:{free_port()}", "--rdzv-id=1"]}[launch]
    run = job(2, "sharded.py", "fsdp2", "short", options=["--nodes=4", "--steps=all"], launch=["--nnodes=4", *words])
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert "Fits on 4 nodes of 2 x NVIDIA GeForce RTX 4090 (" in run.stderr, run.explain()
    assert run.report["job"] == {"ranks": 8, "run": 5, "proven": True, "classes": [
        {"rank": rank, "ranks": count, "proven": True} for rank, count in ((0, 1), (1, 1), (2, 4), (6, 1), (7, 1))]}, run.explain()
    assert run.report["bound"] is None, run.explain()
    rows = run.report["ranks"]
    assert [(row["rank"], row["node"], row["card"]) for row in rows] == [(rank, rank // 2, rank % 2) for rank in range(8)], run.explain()
    assert [row["same_as"] for row in rows] == [None, None, None, 2, 2, 2, None, None], run.explain()
    assert [(card["node"], card["index"]) for card in run.report["cards"]] == [(0, 0), (0, 1), (1, 0), (3, 0), (3, 1)], run.explain()
    for row in rows:
        if row["same_as"] is None:
            parts = sum(min(-(-rows_ // 8), rows_ - row["rank"] * -(-rows_ // 8)) * each
                        for rows_, each in ((1001, 500), (1001, 1), (500, 1001), (500, 1)))
            held = row["at_peak"]["by_category"]
            assert (held["parameters"], held["optimizer_state"]) == (4 * SHORT_BLOCKS * parts, 8 * SHORT_BLOCKS * parts), (row["rank"], run.explain())


def test_what_is_not_proven_is_a_bound(job):
    """The first and the last rank have shards of different sizes: nobody knows which of them the others are like."""
    run = job(4, "sharded.py", "fsdp2", "short", options=["--ranks=0,3", "--steps=all"])
    assert (run.status, run.report["bound"]) == (0, "lower"), run.explain()
    assert run.report["job"]["proven"] is False and "not proven" in run.stderr, run.explain()


def test_a_rank_that_is_not_run_is_like_the_one_with_its_part(job):
    """Two copies of a model in two uneven parts. The copies of one part that are run did the same, so that copies make no difference."""
    every = whole_job(job, "sharded.py", ["hybrid", "short"])
    for ranks, same_as in (("0,1,3", [None, None, 0, None]), ("0,1,2", [None, None, None, 1])):
        run = job(4, "sharded.py", "hybrid", "short", options=[f"--ranks={ranks}", "--steps=all"])
        assert (run.status, run.report["bound"], run.report["job"]["proven"]) == (0, None, True), run.explain()
        assert [row["same_as"] for row in run.report["ranks"]] == same_as, run.explain()
        assert [row["peak"] for row in run.report["ranks"]] == [row["peak"] for row in every.report["ranks"]], run.explain() + every.explain()
        assert "same position in every process group where the position makes a difference" in " ".join(run.stderr.split()), run.explain()


def test_where_nobody_has_its_part_nothing_is_proven(job):
    """The same, of which the first and the last rank are run: nobody shows whether parts or copies make the difference."""
    run = job(4, "sharded.py", "hybrid", "short", options=["--ranks=0,3", "--steps=all"])
    assert (run.status, run.report["bound"], run.report["job"]["proven"]) == (0, "lower", False), run.explain()
    assert [one["proven"] for one in run.report["job"]["classes"]] == [False, True], run.explain()
    assert "ranks with the same place in a smaller group did not do the same" in " ".join(run.stderr.split()), run.explain()


def test_a_place_in_a_smaller_group_changes_nothing_where_all_did_the_same(job):
    run = job(4, "sharded.py", "hybrid", "even", "short", options=["--ranks=0,1,3", "--steps=all"])
    assert (run.status, run.report["bound"], run.report["job"]["proven"]) == (0, None, True), run.explain()


@pytest.mark.parametrize("environment, ranks", [(MAIN, "0,1,3"), (MAIN, "0,3"), *((end, "0,1,3") for end in ENDS)])
def test_calls_are_answered_for_all_ranks(job, environment, ranks):
    run = job(4, "absent.py", options=[f"--ranks={ranks}", "--steps=all"], environment=environment)
    for rank in ranks.split(","):
        assert f"rank {rank} of 4 got all" in run.stdout, run.explain()
    assert "rank 2" not in run.stdout and not run.report["coverage"]["refused_calls"], run.explain()


@pytest.mark.parametrize("way, call", [("broadcast", "broadcast_object_list"), ("receive", "recv")])
def test_what_only_an_absent_rank_could_say_ends_with_a_line(job, way, call):
    run = job(4, "absent.py", way, options=["--ranks=0,3"])
    assert (run.status, run.verdict) == (1, "failed"), run.explain()
    assert f"tonnage: {call}: rank 2 is not run" in run.stderr and "--ranks" in run.stderr, run.explain()
    assert {row["name"] for row in run.report["coverage"]["refused_calls"]} == {call}, run.explain()


def test_a_rank_out_of_memory_is_the_verdict(job):
    run = job(4, "ending.py", "memory", options=["--ranks=0,3"])
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert "tonnage fix" not in run.stderr, run.explain()  # it would start all of them
    assert [row["out_of_memory"] for row in run.report["ranks"] if row["same_as"] is None] == [False, True], run.explain()


def test_a_rank_that_leaves_the_others_waiting_is_named(job):
    run = job(4, "ending.py", "skip", options=["--ranks=0,3"])
    assert (run.status, run.verdict) == (124, "failed"), run.explain()
    hang = run.report["hang"]
    assert sorted((row["rank"], row["operation"]) for row in [hang, *hang["waiting"]]) == [(0, "all_reduce"), (3, "broadcast")], run.explain()


SPAWNS = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
def main(rank, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=4)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).cuda(), [rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(8, 512, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()
    sys.exit(0)
if __name__ == "__main__":
    mp.spawn(main, (sys.argv[1],), 4)
    print("all have ended")
"""
STARTS = """
import os, subprocess, sys, time
base = dict(os.environ, MASTER_ADDR="localhost", MASTER_PORT=sys.argv[1], WORLD_SIZE="4")
ranks = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**base, "RANK": r, "LOCAL_RANK": r}) for r in "0123"]
for rank in ranks[1:3]:
    while rank.poll() is None and open(f"/proc/{rank.pid}/comm").read() != "tonnage-parked\\n":
        time.sleep(0.1)
    print("parked", [line.split()[1] for line in open(f"/proc/{rank.pid}/status") if line.startswith("VmRSS")][0])
print("ended", [rank.wait() for rank in ranks])
"""


def test_ranks_of_spawn_are_parked(tonnage, tmp_path):
    (tmp_path / "spawns.py").write_text(SPAWNS)
    run = tonnage(MAIN, [str(tmp_path / "spawns.py"), str(free_port())], "--gpus=4", "--ranks=0,3", "--steps=all", CARDS, env=THREADS)
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert "all have ended" in run.stdout, run.explain()
    assert [row["same_as"] for row in run.report["ranks"]] == [None, 0, 0, None] and len(run.report["cards"]) == 2, run.explain()


def test_a_parked_rank_is_small_and_ends_as_its_representative(tonnage, tmp_path):
    (tmp_path / "starts.py").write_text(STARTS)
    run = tonnage(MAIN, [str(tmp_path / "starts.py"), str(free_port()), str(PROGRAMS / "ending.py"), "raises"], "--gpus=4", "--ranks=0,3",
                  CARDS, env=THREADS, launches=True)
    sizes = [int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("parked")]
    assert len(sizes) == 2 and max(sizes) <= 2048, run.explain()
    assert run.report["dead"]["rank"] == 3, run.explain()


@pytest.mark.parametrize("options, launch, words", [
    (["--ranks=1,2"], ["--standalone"], "rank 0"),
    (["--ranks=0,9"], ["--standalone"], "rank 9 of a job that has 2"),
    (["--ranks=0;1"], ["--standalone"], "rising order"),
    (["--nodes=3"], ["--nnodes=4", "--node-rank=0", "--master-addr=localhost", "--master-port=31987"], "--nodes 4"),
])
def test_another_job_than_was_said(job, options, launch, words):
    run = job(2, "sharded.py", "ddp", options=options, launch=launch)
    assert run.status == 2 and words in run.stderr, run.explain()
