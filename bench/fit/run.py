#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fit` against every batch tried, and against the batch finders of accelerate and Lightning, on ten programs.

    bench/fit/run.py [--all] [--only TEXT]

All on the virtual GPU: the finders run into out-of-memories there as they would on a card, `fit` predicts and then tries. The card
(--memory) is chosen so that some ten to forty samples fit. `by_trial` is the largest batch that fits in plain runs of every batch,
`tried` in number: with --all from 1 to twice the answer (an hour on two cores), else the eight on each side.
Writes bench/results/fit.csv.
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
from places import PYTHON, ROOT, TONNAGE  # noqa: E402

MEMORY = {"resnet18": 2, "resnet50": 4, "mobilenet": 2, "vit": 5, "convnext": 4, "gpt2": 5, "llama": 4, "bert": 4, "lstm": 3,
          "autoencoder": 3}  # GiB  # fmt: skip
FIELDS = ["model", "memory_gib", "fit", "fit_trials", "fit_out_of_memory", "fit_seconds", "by_trial", "tried", "accelerate",
          "accelerate_out_of_memory", "accelerate_seconds", "lightning", "lightning_out_of_memory",
          "lightning_seconds"]  # fmt: skip
START = 4096  # of accelerate, which only goes down


def command(what, model, words, folder, options=()):
    """(seconds, standard output, document)"""
    out = pathlib.Path(folder) / "out.json"
    out.unlink(missing_ok=True)
    line = [TONNAGE, what, "--quiet", "--gpu=h200", f"--memory={MEMORY[model]}GiB", "--json", out, *options, "--", PYTHON,
            HERE / "train.py", model, *words]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(list(map(str, line)), cwd=folder, capture_output=True, text=True)
    return time.monotonic() - began, done.stdout, json.loads(out.read_text()) if out.exists() else {}


def fits(model, batch):
    with tempfile.TemporaryDirectory() as folder:
        return command("run", model, [batch], folder, ["--no-detail", "--steps=all"])[2]["verdict"] == "fits"


def largest_by_trial(model, answer, everything):
    """Plain runs, as many at once as there are cores."""
    batches = range(1, 2 * answer + 1) if everything else range(max(1, answer - 8), answer + 9)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = dict(zip(batches, pool.map(lambda batch: fits(model, batch), batches)))
    return max((batch for batch, fit in outcomes.items() if fit), default=0), len(outcomes)


def finder(name, model, start, folder):
    seconds, out, _ = command("run", model, [name, start], folder, ["--no-detail", "--steps=all"])
    found = re.search(r"found (\d+) after (\d+)", out)
    return {name: found and found[1], name + "_out_of_memory": found and found[2], name + "_seconds": round(seconds, 1)}


def measure(model, folder, everything):
    seconds, _, document = command("fit", model, ["{batch}"], folder, ["--batch=8"])
    card = document["cards"][0]
    row = {"model": model, "memory_gib": MEMORY[model], "fit": card["largest_batch"], "fit_trials": document["trials"],
           "fit_out_of_memory": document["out_of_memory_trials"], "fit_seconds": round(seconds, 1)}  # fmt: skip
    row["by_trial"], row["tried"] = largest_by_trial(model, row["fit"], everything)
    return {**row, **finder("accelerate", model, START, folder), **finder("lightning", model, 1, folder)}


def write(path, rows):
    """After each program: all of them with --all take an hour."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--all", action="store_true", help="try every batch up to twice the answer")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/fit.csv")
    options = parser.parse_args()
    rows = {}
    if options.output.exists():
        rows = {row["model"]: row for row in csv.DictReader(options.output.open(newline=""))}
    for model in MEMORY:
        if options.only in model:
            with tempfile.TemporaryDirectory() as folder:
                rows[model] = measure(model, folder, options.all)
            print("  ".join(f"{name}={rows[model][name]}" for name in FIELDS), flush=True)
            write(options.output, rows)
    return 0 if all(str(row["fit"]) == str(row["by_trial"]) for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
