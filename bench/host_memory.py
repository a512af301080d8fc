#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The computer's memory of data loaders, workers x batches ahead: what --host-memory says, beside what the kernel counts.

  bench/host_memory.py [--only W,P,pin]     writes bench/results/host_memory.csv

`ours` is `host.peak_bytes` of `tonnage run --host-memory`. `tree` is the same run sampled from outside: Pss_Anon of
/proc/<pid>/smaps_rollup of every process of the program, and shared memory of their control group, at one moment;
`kernel` is the group's own counter of anonymous memory in place of the sum of Pss_Anon, which can be read more often. `plain` is the kernel's counter of the same program
without Tonnage, on the CPU, with a consumer that takes 50 ms a batch; it pins nothing there, so rows with pinning have none.
Needs a control group with a memory controller, and the environment torch-2.11.0.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from places import PYTHON, ROOT, TONNAGE

PROGRAM = ROOT / "tests/vgpu/programs/loader_memory.py"
TABLE = ROOT / "bench/results/host_memory.csv"
MIB = 1 << 20
CASES = [(2, 2), (4, 4), (6, 1), (8, 2)]
ROOTS = (("/sys/fs/cgroup/memory", "total_rss", "total_shmem"), ("/sys/fs/cgroup", "anon", "shmem"))


class Group:
    """A control group of our own, and what is in it."""

    def __init__(self):
        for root, anonymous, shared in ROOTS:
            self.folder, self.names = pathlib.Path(root, f"tonnage-bench-{os.getpid()}"), (anonymous, shared)
            try:
                self.folder.mkdir()
                self.counted()
                return
            except (OSError, KeyError):
                pass
        sys.exit("bench/host_memory.py: no control group with a memory controller can be made here")

    def counted(self):
        rows = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines() if len(line.split()) == 2)
        return [int(rows[name]) for name in self.names]

    def sampled(self):
        """Bytes of the pages of each of its processes, shared ones in equal parts; Tonnage's own processes are left out."""
        total = 0
        for pid in (self.folder / "cgroup.procs").read_text().split():
            try:
                if "python" in os.readlink(f"/proc/{pid}/exe"):
                    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                    total += 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(("Pss_Anon:", "SwapPss:")))
            except OSError:
                continue
        return total


def measure(command, sample, **options):
    """(most by the kernel's counters, most by samples) while the command runs."""
    group, over = Group(), threading.Event()
    counted, sampled = [0], [0]

    def watch(read, most, seconds):
        while not over.is_set():
            most[0] = max(most[0], read())
            time.sleep(seconds)

    watchers = [threading.Thread(target=watch, args=(lambda: sum(group.counted()), counted, 0.005))]
    if sample:
        watchers.append(threading.Thread(target=watch, args=(lambda: group.sampled() + group.counted()[1], sampled, 0.05)))
    for watcher in watchers:
        watcher.start()
    try:
        subprocess.run(command, preexec_fn=lambda: (group.folder / "cgroup.procs").write_text("0"), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)  # fmt: skip
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, command))}: {error.stderr.decode()[-2000:]}")
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()
        while (group.folder / "cgroup.procs").read_text():
            time.sleep(0.05)
        group.folder.rmdir()
    return counted[0], sampled[0]


def case(workers, ahead, pin, folder):
    python = str(PYTHON)
    arguments = [str(workers), str(ahead), *(["pin"] if pin else [])]
    out = folder / "run.json"
    words = [str(TONNAGE), "run", "--gpu=rtx3060", "--host-memory=16GiB", f"--json={out}", "--", python, str(PROGRAM), *arguments]
    kernel, tree = measure(words, True, cwd=folder)
    host = json.loads(out.read_text())["host"]
    plain = None if pin else measure([python, str(PROGRAM), *arguments, "plain"], False, cwd=folder)[0]
    ours = host["peak_bytes"]
    row = {"workers": workers, "ahead": ahead, "pinned": "yes" if pin else "no", "full": "yes" if host["loaders"][0]["full"] else "no"}
    row |= {name: round(value / MIB) if value else "" for name, value in (("ours_mib", ours), ("tree_mib", tree), ("kernel_mib", kernel), ("plain_mib", plain))}
    for name, value in (("of_tree", tree), ("of_kernel", kernel), ("of_plain", plain)):
        row[name] = f"{ours / value - 1:+.1%}" if value else ""
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="WORKERS,AHEAD or WORKERS,AHEAD,pin; nothing is written")
    words = parser.parse_args()
    cases = [(*pair, pin) for pair in CASES for pin in (False, True)]
    if words.only:
        parts = words.only.split(",")
        cases = [(int(parts[0]), int(parts[1]), "pin" in parts)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for one in cases:
            rows.append(case(*one, pathlib.Path(folder)))
            print(rows[-1], flush=True)
    if not words.only:
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
