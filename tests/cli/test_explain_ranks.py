# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain` on logs of many ranks: which failed first, which by themselves, which only followed."""

import json
import random
import subprocess

import pytest
from command import TONNAGE

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {card} has a total capacity of 79.15 GiB of which "
       "1.20 GiB is free. Including non-PyTorch memory, this process has 77.95 GiB memory in use. Of the allocated memory 70.00 GiB is "
       "allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated.")
WATCHDOG = ("[E1121 10:11:12.345678901 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=26214400, Timeout(ms)=600000) ran for 600021 milliseconds")
CLOSED = ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2395, remote process exited or there was a network "
          "error, NCCL version 2.27.5")
SUMMARY = """\
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_10:11:14
  host      : node1
  rank      : 5 (local_rank: 5)
  exitcode  : -15 (pid: 1236)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 1236
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_10:11:13
  host      : node0
  rank      : {root} (local_rank: {root})
  exitcode  : 1 (pid: 1234)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def explain(text, *words):
    done = subprocess.run([str(TONNAGE), "explain", *words], input=text.encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def ranks(text, schema):
    document = json.loads(explain(text, "-", "--json", "-"))
    schema("explain", document)
    return document.get("ranks")


def failure(rank, last):
    prefix = f"[rank{rank}]: "
    lines = ["Traceback (most recent call last):", '  File "/work/train.py", line 41, in <module>', "    loss = model(x)", last]
    return [prefix + line for line in lines]


def job(root=17, count=64, megabytes=1.0):
    """A log of `count` ranks in which `root` runs out of memory in the middle; the others time out or lose the connection."""
    noise = random.Random(1)
    size, lines = 0, [f"INFO world_size={count}"]
    while size < megabytes * 2**20:
        line = "[rank%d]: step %d loss %.6f memory 71.2 GiB" % (noise.randrange(count), len(lines) // count, noise.random())
        lines.append(line)
        size += len(line) + 1
    lines += failure(root, OOM.format(card=root % 8))
    for rank in range(count):
        if rank != root:
            lines += [f"[rank{rank}]:" + WATCHDOG.format(rank=rank)] if rank % 2 else failure(rank, CLOSED)
    return "\n".join(lines) + "\n"


def test_the_first_of_sixty_four_is_named(schema):
    text = job()
    assert len(text) > 2**20
    screen = explain(text, "-")
    assert "Of 64 ranks, rank 17 failed first" in screen and "torch.OutOfMemoryError" in screen
    found = ranks(text, schema)
    assert (found["count"], found["first"], found["said_by"], found["failed_too"]) == (64, 17, "order", [])
    assert found["followed"] == [rank for rank in range(64) if rank != 17]
    assert text.split("\n")[found["line"] - 1].startswith("[rank17]: torch.OutOfMemoryError")


def test_the_error_of_the_first_rank_names_the_others():
    errors = json.loads(explain(job(megabytes=0.01), "-", "--json", "-"))["errors"]
    assert errors[0]["ranks"] == [{"rank": rank, "first": rank == 17} for rank in range(64)]
    two = "\n".join(failure(1, OOM.format(card=1)) + failure(0, OOM.format(card=0)) + failure(2, CLOSED))
    first, second = json.loads(explain(two, "-", "--json", "-"))["errors"]
    assert first["ranks"] == [{"rank": rank, "first": rank == 1} for rank in range(3)]
    assert second["ranks"] == [{"rank": 0, "first": False}]


def test_the_launcher_says_which_error_was_first():
    text = "\n".join(failure(0, OOM.format(card=0)) + failure(4, OOM.format(card=4))) + "\n" + SUMMARY.format(root=4)
    first, second = json.loads(explain(text, "-", "--json", "-"))["errors"]
    assert first["ranks"] == [{"rank": 0, "first": False}]
    assert {"rank": 4, "first": True} in second["ranks"] and {"rank": 0, "first": False} in second["ranks"]


def test_an_error_without_ranks_has_none():
    assert json.loads(explain(OOM.format(card=0), "-", "--json", "-"))["errors"][0]["ranks"] == []


def test_a_follower_that_speaks_first_is_not_the_first(schema):
    lines = [f"[rank3]:{WATCHDOG.format(rank=3)}", *failure(3, CLOSED), *failure(2, "ValueError: loss is nan")]
    found = ranks("\n".join(lines), schema)
    assert (found["first"], found["what"], found["followed"], found["failed_too"]) == (2, "ValueError", [3], [])


def test_others_that_fail_by_themselves_are_no_followers(schema):
    text = "\n".join(failure(1, OOM.format(card=1)) + failure(0, OOM.format(card=0)) + failure(2, CLOSED))
    found = ranks(text, schema)
    assert (found["first"], found["failed_too"], found["followed"]) == (1, [0], [2])


def test_the_launcher_goes_before_the_order_of_lines(schema):
    # Files of ranks put one behind the other: order says nothing, torchrun's summary does.
    text = "\n".join(failure(0, "RuntimeError: shape mismatch") + failure(4, "RuntimeError: shape mismatch")) + "\n" + SUMMARY.format(root=4)
    found = ranks(text, schema)
    assert (found["first"], found["said_by"], found["failed_too"], found["followed"]) == (4, "launcher", [0], [5])


def test_a_root_cause_that_only_followed_is_not_believed(schema):
    text = "\n".join(failure(4, CLOSED) + failure(6, OOM.format(card=6))) + "\n" + SUMMARY.format(root=4)
    found = ranks(text, schema)
    assert (found["first"], found["said_by"], found["followed"]) == (6, "order", [4, 5])


def test_the_launcher_alone_names_the_rank(schema):
    found = ranks(SUMMARY.format(root=3), schema)
    assert (found["first"], found["what"], found["said_by"], found["count"]) == (3, "exit status 1", "launcher", None)


def test_memory_that_nccl_lacks_is_a_failure_of_its_own(schema):
    last = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled cuda error; Last error: Cuda failure 2 'out of memory'"
    found = ranks("\n".join(failure(1, last) + failure(0, CLOSED)), schema)
    assert (found["first"], found["followed"]) == (1, [0])


@pytest.mark.parametrize("prefix", ["\033[36m(RayTrainWorker pid=12)\033[0m ", "2026-11-21 10:11:12,345 ", ""])
def test_prefixes(prefix, schema):
    text = "\n".join(prefix + line for line in failure(0, CLOSED) + failure(1, "KeyError: 'x'"))
    found = ranks(text, schema)
    assert found and found["first"] == 1


@pytest.mark.parametrize("text", ["", "no ranks here\n", "[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n",
                                  "[rank0]: step 1\n[rank1]: step 1\n", "rank\0 3: x\n" * 5, "Root Cause (first observed failure):\n"])  # fmt: skip
def test_nothing_to_tell(text, schema):
    assert ranks(text, schema) is None
    assert "ranks" not in explain(text, "-")


def test_words_about_the_machine_point_at_doctor(schema):
    for words in ("RuntimeError: Found no NVIDIA driver on your system. Please check", "RuntimeError: No CUDA GPUs are available",
                  "x" * 16370 + "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"):  # fmt: skip
        assert "tonnage doctor" in explain(words, "-")
        assert ranks(words, schema) is None
    assert "tonnage doctor" not in explain("ValueError: x", "-")
    assert "tonnage doctor" not in explain(OOM.format(card=0) + " no CUDA-capable device is detected", "-")
