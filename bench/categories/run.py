#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each category holds at the peak of GPT-2 and ResNet-50: by hand, as Tonnage says, as torch.profiler says.

    bench/categories/run.py [--output FILE]

By hand means from shapes alone, below; nothing of it comes from a run. All three are about the same step of one run on
the virtual GPU. Writes bench/results/categories.csv; doc/design/0008-categories.md explains the differences.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402

RESULTS = ROOT / "bench/results/categories.csv"
PROGRAM = HERE / "profiled.py"
OPTIONS = ("--gpu=a100-80", "--steps=all")
F32, I64 = 4, 8  # bytes
# No such library: each convolution then takes 8 MiB. With the real figures ResNet-50's peak lies in the backward of a layer
# whose workspace is large, where some activations are gone: a moment that no count from shapes can find.
SMALL_WORKSPACES = {"TONNAGE_CUDNN": "/nowhere/libcudnn.so.9"}
# Names of the profiler's for ours; it puts buffers of modules to the parameters, and calls what it cannot tell unknown.
PROFILER = {"parameters": "parameter", "gradients": "gradient", "optimizer_state": "optimizer_state",
            "activations": "activation", "inputs": "input"}  # fmt: skip


def gpt2(batch=8, length=512, width=768, layers=12, words=50257, places=1024):
    """The peak is in the backward of the loss: all activations are there, and two tensors as large as the logits."""
    linear = sum((rows + 1) * columns for rows, columns in
                 ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)))  # fmt: skip
    parameters = F32 * ((words + places) * width + layers * (linear + 4 * width) + 2 * width)
    states = F32 * batch * length * width  # one tensor of hidden states
    statistics = 2 * F32 * batch * length  # of a layer norm: mean and deviation
    sums = F32 * batch * length * (width // 64)  # of the softmax of attention, for each head and place
    layer = (
        (1 + 1 + 3 + 2) * states  # input of the norm, its result, queries with keys and values, copies of the latter
        + (1 + 1) * states  # result of attention, input of the next norm
        + (1 + 4) * states  # result of that norm, what GELU gets
        + 16 * states  # GELU by its formula: power, product, tanh, and what the last product takes, four times each
        + sums + 2 * statistics
    )  # fmt: skip
    logits = F32 * batch * length * words
    return {
        "parameters": parameters,
        "gradients": 0,  # set to None, and the first one is not made yet
        "optimizer_state": 2 * parameters,
        "activations": layers * layer + 2 * states + statistics + logits + batch * length,  # last: a mask of labels
        "inputs": I64 * batch * length,
    }


def resnet50(batch=32, classes=1000):
    """The peak is in the backward of the last block: the gradients of the classifier are there, its activations gone."""
    plane = lambda channels, side: F32 * batch * channels * side * side  # noqa: E731
    parameters, inside, kept = 3 * 64 * 49 + 2 * 64, 64, 0
    kept += 2 * plane(64, 112) + 2 * F32 * 64  # what the norm gets; its result, which ReLU changes in place; statistics
    kept += plane(64, 56) + plane(64, 56) // F32 * I64  # pooled, and where each maximum was
    side = 56
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            before, shrinks = side, block == 0 and width > 64
            side = side // 2 if shrinks else side
            convolutions = [(inside, width, 1, before), (width, width, 9, side), (width, 4 * width, 1, side)]
            kept += sum(2 * plane(out, its) for _, out, _, its in convolutions)
            if block == 0:
                convolutions.append((inside, 4 * width, 1, side))
                kept += plane(4 * width, side)  # its norm's result is added, and gone
            parameters += sum(into * out * area + 2 * out for into, out, area, _ in convolutions)
            kept += sum(2 * F32 * out for _, out, _, _ in convolutions)
            inside = 4 * width
    classifier = (inside + 1) * classes
    return {
        "parameters": F32 * (parameters + classifier),
        "gradients": F32 * classifier,
        "optimizer_state": F32 * (parameters + classifier),
        "activations": kept,
        "inputs": plane(3, 224) + I64 * batch,
    }


BY_HAND = {"gpt2": gpt2, "resnet50": resnet50}


def run(model):
    """Its status, its report, and what it printed on both streams."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [TONNAGE, "run", "--quiet", *OPTIONS, "--json", report, "--", PYTHON, PROGRAM, model]
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": folder, **SMALL_WORKSPACES})  # fmt: skip
        return done.returncode, json.loads(report.read_text()) if report.exists() else {}, done.stdout, done.stderr


def rows_of(model, hand, run=run):
    """run: what runs the program."""
    status, report, printed, errors = run(model)
    if status != 0:
        sys.exit(f"{model}: status {status}\n{errors[-2000:]}")
    ours, profiler = report["at_peak"]["by_category"], json.loads(printed.strip().splitlines()[-1])
    for category, bytes_by_hand in hand.items():
        theirs = profiler.pop(PROFILER[category], 0)
        yield {"model": model, "category": category, "by_hand": bytes_by_hand, "tonnage": ours[category],
               "profiler": theirs}  # fmt: skip
    for name, size in sorted(profiler.items()):
        yield {"model": model, "category": f"profiler's {name}", "by_hand": "", "tonnage": "", "profiler": size}
    for name in ("temporaries", "workspaces"):
        yield {"model": model, "category": name, "by_hand": "", "tonnage": ours[name], "profiler": ""}


def differing(rows):
    return [row for row in rows if row["by_hand"] != "" and row["by_hand"] != row["tonnage"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    rows = [row for model, count in BY_HAND.items() for row in rows_of(model, count())]
    with options.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print("{model:9} {category:28} {by_hand:>13} {tonnage:>13} {profiler:>13}".format(**row))
    wrong = differing(rows)
    print(f"{len(wrong)} categories differ from the hand count")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
