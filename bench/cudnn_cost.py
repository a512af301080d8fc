#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What asking the real cuDNN adds to a job (doc/design/0013-cudnn.md).

    bench/cudnn_cost.py [--repeat 3] [--only TEXT]

Each net of tests/vgpu/cudnn/calls.py trains two steps three ways in turn: with a library that is not there (the model
answers), with no answers on disk (cold), and with them (warm). The seconds are those of its steps alone, by the program's
own clock, so that imports, which take most of a run and scatter most, do not count. Medians of the turns; `cold_seconds`
and `warm_seconds` are what is above the model's. Writes bench/results/cudnn_cost.csv.
"""

import argparse
import csv
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from places import PYTHON, ROOT, TONNAGE

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = ROOT / "tests/vgpu/cudnn/calls.py"
NETS = {"resnet50": 8, "vgg16": 4, "convnext_tiny": 4, "mobilenet_v2": 8, "unet": 8}
MODES = ["fp32", "amp", "channels_last", "benchmark"]
FIELDS = ["net", "mode", "gpu", "model_steps_seconds", "cold_seconds", "warm_seconds"]


def steps_seconds(words, environment):
    command = [TONNAGE, "run", "--quiet", "--no-detail", "--gpu=rtx3060", "--", PYTHON, PROGRAM, *words]
    done = subprocess.run(list(map(str, command)), env={**os.environ, **environment}, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return float(re.search(r"^seconds ([0-9.]+)$", done.stdout, re.MULTILINE).group(1))


def measure(net, mode, repeat):
    words = [net, mode, NETS[net]]
    rows = {"model": [], "cold": [], "warm": []}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            rows["model"].append(steps_seconds(words, {"TONNAGE_CUDNN": "/nowhere"}))
            rows["cold"].append(steps_seconds(words, {"XDG_CACHE_HOME": cache}))
            rows["warm"].append(steps_seconds(words, {"XDG_CACHE_HOME": cache}))
    median = {kind: statistics.median(seconds) for kind, seconds in rows.items()}
    return {"net": net, "mode": mode, "gpu": "rtx3060", "model_steps_seconds": f"{median['model']:.2f}",
            "cold_seconds": f"{median['cold'] - median['model']:.2f}",
            "warm_seconds": f"{median['warm'] - median['model']:.2f}"}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", metavar="TEXT", help='"NET MODE" that hold this')
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results/cudnn_cost.csv")
    options = parser.parse_args()
    lines = []
    for net in NETS:
        for mode in MODES:
            if options.only in f"{net} {mode}":
                lines.append(measure(net, mode, options.repeat))
                print(*lines[-1].values(), flush=True)
    with open(options.output, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
