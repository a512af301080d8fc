# SPDX-License-Identifier: Apache-2.0
"""--host-memory without PyTorch: which processes and which memory count, the verdict, and the document."""

import json
import sys

MIB = 1 << 20
CARD = [["forward", 20 * MIB]]
LOADER = {"at": {"file": "/x/train.py", "line": 16, "function": "main"}, "workers": 4, "ahead": 2, "batch_size": 8,
          "batch_bytes": 64 * MIB, "pins": False, "full": True, "pids": [1]}  # fmt: skip

# Forks two workers that share the parent's memory, each with some of its own; shares memory that nobody maps.
TREE = """
import mmap, os, time
data = bytearray(os.urandom(1)) * (60 << 20)
handle = os.open("/dev/shm/" + os.environ["NAME"], os.O_CREAT | os.O_RDWR)
os.unlink("/dev/shm/" + os.environ["NAME"])
for i in range(16):
    os.write(handle, b"x" * (1 << 20))
held = os.open("file", os.O_CREAT | os.O_RDWR)
os.truncate(held, 80 << 20)
pages = mmap.mmap(held, 80 << 20)
sum(pages[i] for i in range(0, 80 << 20, 4096))
workers = []
for worker in range(2):
    pid = os.fork()
    if not pid:
        own = mmap.mmap(-1, 20 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for i in range(0, len(own), 4096):
            own[i] = 1
        time.sleep(60)
    workers.append(pid)
time.sleep(1.5)
for pid in [os.getpid(), *workers]:
    with open("/proc/%d/smaps_rollup" % pid) as rollup:
        print("anonymous", next(line for line in rollup if line.startswith("Pss_Anon:")).split()[1], flush=True)
for pid in workers:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""


def run(tonnage, schema, *options, **wish):
    done, report = tonnage.fake("--gpu=rtx3060", *options, document={"loaders": [LOADER]}, take=CARD, sleep=0.5, **wish)
    schema("run", report)
    return done, report


def test_nothing_is_looked_at_unless_asked(tonnage, schema):
    done, report = run(tonnage, schema)
    assert done.returncode == 0 and "computer's memory" not in done.stderr
    assert report["host"]["limit_bytes"] is report["host"]["peak_bytes"] is report["host"]["at_peak"] is None


def test_enough(tonnage, schema):
    done, report = run(tonnage, schema, "--host-memory=1GiB")
    host = report["host"]
    assert done.returncode == 0 and report["verdict"] == "fits"
    assert 2 * MIB < host["peak_bytes"] < 60 * MIB and host["over_bytes"] == 0 and host["limit_bytes"] == 1 << 30
    assert [(row["kind"], row["anonymous_bytes"]) for row in host["at_peak"]["processes"]] == [
        ("program", host["at_peak"]["anonymous_bytes"])]
    assert "to spare of 1.00 GiB" in done.stderr
    assert "/x/train.py:16 main: 4 workers x 2 batches ahead x 64.0 MiB = 512.0 MiB" in done.stderr


def test_too_little(tonnage, schema):
    """It fits the card and not the computer: a verdict and a status of their own, the loader's line, and what to type."""
    done, report = run(tonnage, schema, "--host-memory=1MiB")
    assert done.returncode == 11 and (report["verdict"], report["exit_status"]) == ("over_host_memory", 11)
    first = report["findings"][0]
    assert first["id"] == "host_ram" and first["at"]["line"] == 16 and first["bytes"] == report["host"]["over_bytes"] > MIB
    assert "Does not fit the computer's memory: " in done.stderr
    assert "It fits on NVIDIA GeForce RTX 3060 (11.75 GiB): 150.0 MiB at the peak" in done.stderr
    assert "prefetch_factor=1 instead of 2 saves about 256.0 MiB" in " ".join(done.stderr.split())
    assert "tonnage fix --gpu rtx3060 --host-memory 1MiB --" in " ".join(done.stderr.split())
    again = tonnage("report", "report.json", "--text")
    assert again.stdout == done.stderr[done.stderr.index("Does not fit the computer"):]


def test_a_loader_that_holds_a_trifle_is_not_to_blame(tonnage, schema):
    small = {**LOADER, "batch_bytes": 1024}
    done, report = tonnage.fake("--gpu=rtx3060", "--host-memory=1MiB", document={"loaders": [small]}, take=CARD, sleep=0.5)
    schema("run", report)
    assert done.returncode == 11 and report["findings"][0]["at"] is None
    assert "prefetch_factor" not in done.stderr and "read in pieces" in " ".join(done.stderr.split())


def test_what_was_left_out_decides(tonnage, schema):
    """Initial values that were skipped would have filled memory: nothing is promised where they decide."""
    document = {"init_skipped": {"tensors": 9, "bytes": 4 << 30}}
    done, report = tonnage.fake("--gpu=rtx3060", "--host-memory=2GiB", document=document, take=CARD, sleep=0.5)
    assert done.returncode == 12 and report["verdict"] == "undecided" and report["findings"][0]["id"] == "host_unknown"
    assert report["host"]["unfilled_bytes"] == 4 << 30 and "--init real" in done.stderr


def test_the_card_comes_first(tonnage, schema):
    """A program that does not fit the card does not: that the computer has too little, too, stands beside it."""
    oom = {"device": 0, "requested_bytes": 1 << 40, "free_bytes": 5, "allocated_bytes": 1, "reserved_bytes": 1, "step": 1}
    done, report = tonnage.fake("--gpu=rtx3060", "--host-memory=1MiB", take=CARD, refused=1 << 40, sleep=0.5, exit=1,
                                document={"out_of_memory": oom, "out_of_memory_ended_process": True})  # fmt: skip
    assert done.returncode == 10 and report["verdict"] == "out_of_memory"
    assert "host_ram" in [row["id"] for row in report["findings"]] and report["host"]["over_bytes"] > 0


def test_which_memory_counts(tonnage, schema, tmp_path):
    """What was forked counts once, each worker's own, and shared memory that nobody has mapped; pages of files do not."""
    tonnage.env["NAME"] = "tonnage-test-%s" % tmp_path.name
    report = tonnage.cwd / "report.json"
    done = tonnage("run", "--gpu=rtx3060", "--json", report, "--host-memory=4GiB", "--", sys.executable, "-I", "-X", "tonnage=off", "-c", TREE)
    document = json.loads(report.read_text())
    schema("run", document)
    host = document["host"]
    moment = host["at_peak"]
    assert done.returncode == 12, done.stderr  # it used no card
    assert len(moment["processes"]) == 3
    assert 16 * MIB <= moment["shared_bytes"] < 17 * MIB
    # 60 once, twice 20, and the interpreters: how much of those the processes share depends on the size of the machine's pages.
    anonymous = 1024 * sum(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("anonymous "))
    assert abs(moment["anonymous_bytes"] - anonymous) < 2 * MIB and anonymous > 100 * MIB
    assert moment["file_bytes"] > 80 * MIB
    assert host["peak_bytes"] == moment["anonymous_bytes"] + moment["shared_bytes"] <= host["highest_bytes"]


def test_wrong_sizes(tonnage):
    for size in ("0", "much", "-1"):
        done = tonnage("run", "--host-memory", size, "--", "true")
        assert done.returncode == 2 and "--host-memory" in done.stderr
