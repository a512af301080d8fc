#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds call_cost.c, runs it under `tonnage run` and writes bench/results/call_cost.csv (nanoseconds, best of 9)."""

import pathlib
import subprocess
import sys

from places import ROOT, TONNAGE

HERE = pathlib.Path(__file__).resolve().parent
GOALS = {"launch": 100, "malloc_free_pair": 400, "collective_of_1_rank": 2000, "collective_of_2_ranks": 2000}


def main():
    program = ROOT / "build/call_cost"
    compiler = ["cc", "-std=gnu17", "-O2", "-Wall", "-Wextra"]
    subprocess.run([*compiler, HERE / "call_cost.c", "-o", program, "-ldl"], check=True)
    # By its SONAME: the virtual library of the run answers, as it does for PyTorch.
    command = [TONNAGE, "run", "--quiet", "--steps=all", "--gpu=h200", "--gpus=2", "--", program, "libcudart.so.13",
               "libnccl.so.2"]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = dict(line.split(",") for line in done.stdout.splitlines() if line.count(",") == 1)
    if not rows:
        print(f"call_cost: status {done.returncode}\n{done.stderr}", file=sys.stderr)
        return 1
    output = HERE / "results/call_cost.csv"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("call,nanoseconds\n" + "".join(f"{name},{value}\n" for name, value in rows.items()))
    for name, value in rows.items():
        goal = f" (goal {GOALS[name]})" if name in GOALS else ""
        print(f"{name:30} {value:>8} ns, {float(value) / float(rows['lock_pair']):5.1f} lock pairs{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
