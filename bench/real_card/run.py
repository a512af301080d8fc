#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs.txt on this machine's GPU and on its virtual copy, and writes both sides into a table, a line for each job.

    bench/real_card/run.py [--csv bench/results/real_card.csv] [--gpu NAME] [--tonnage PATH] [--seconds 300] [--only TEXT]

Jobs on the card run one after another, but for what they import; their copies run beside them, since they need no card. A
job that the table holds for this card already is not run again, so a call that was cut short is gone on with by the next.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import ROOT, TONNAGE  # noqa: E402

JOB = [sys.executable, str(HERE / "job.py")]
COUNTED = ["allocated_peak", "reserved_peak", "allocations", "segments", "retries"]
FIELDS = ["job", "card", "torch", "end", "virtual_end", *(side + name for name in COUNTED for side in ("", "virtual_")),
          "beside_pytorch", "virtual_beside_pytorch", "step_seconds", "reserved_error"]  # fmt: skip


def outcome(words, environment):
    """What the job says of itself, or that it failed."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"job"')]
    if not lines:
        return {"end": "failed: " + (done.stdout + done.stderr).strip().rpartition("\n")[2]}
    answer = json.loads(lines[-1])
    asked = re.search(r"Tried to allocate ([\d.]+ \w+)", answer["end"])
    return {**answer, "end": f"out of memory, asked {asked[1]}" if asked else answer["end"]}


def virtual(options, job):
    words = [options.tonnage, "run", "--quiet", "--gpu", options.gpu, "--steps", "all", "--no-detail", "--"]
    return outcome([*words, *JOB, *job.split()], {})


def measured(job, turn, late):
    """The job on the card, when its turn comes; None when that is too late."""
    return None if time.monotonic() > late else outcome([*JOB, *job.split()], {"REAL_CARD_TURN": turn})


def row_of(job, real, copy):
    row = {"job": job, "card": real.get("card"), "torch": real.get("torch"), "end": real["end"], "virtual_end": copy["end"],
           "step_seconds": real.get("step_seconds")}  # fmt: skip
    for name in [*COUNTED, "beside_pytorch"]:
        row[name], row["virtual_" + name] = real.get(name), copy.get(name)
    if real.get("reserved_peak") and copy.get("reserved_peak"):
        row["reserved_error"] = "%+.2f" % (100 * (copy["reserved_peak"] / real["reserved_peak"] - 1))
    return row


def card_name():
    """As PyTorch names it; asked in a process of its own, since a driver that was begun is of no use to forked ones."""
    words = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=pathlib.Path, default=ROOT / "bench/results/real_card.csv")
    parser.add_argument("--gpu", default="auto")
    parser.add_argument("--tonnage", default=str(TONNAGE))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows = list(csv.DictReader(open(options.csv))) if options.csv.exists() else []
    card = card_name()
    known = {row["job"] for row in rows if row["card"] == card}
    jobs = [line for line in (HERE / "jobs.txt").read_text().splitlines() if line and line[0] != "#"]
    jobs = [job for job in jobs if job not in known and options.only in job]
    late = time.monotonic() + options.seconds
    with tempfile.NamedTemporaryFile() as turn, concurrent.futures.ThreadPoolExecutor(4) as copies, \
            concurrent.futures.ThreadPoolExecutor(4) as turns:  # fmt: skip
        pairs = [(job, turns.submit(measured, job, turn.name, late), copies.submit(virtual, options, job)) for job in jobs]
        for job, real, copy in pairs:
            if real.result() is None:
                continue
            rows.append(row_of(job, real.result(), copy.result()))
            print(rows[-1]["job"], rows[-1]["end"], rows[-1].get("reserved_error"), flush=True)
            with open(options.csv, "w", newline="") as out:
                writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
