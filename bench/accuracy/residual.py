#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What workspaces would have to be for the convolutional nets of measured.csv to come out right.

    bench/accuracy/residual.py [--only TEXT] [--jobs N]

Their cuDNN (9.1, torch 2.6.0) cannot be asked without a card: results.csv has them with a constant (8 MiB for each
convolution's first plan). Here the cuDNN of torch 2.11.0 (9.19) stands in for it (TONNAGE_CUDNN), with the same PyTorch,
program and card:

* `stand_in_bytes` is what its own choice comes to, beside `constant_bytes` and the measured `ground_bytes`;
* `needed_workspace_bytes` is the workspace that closes the residual of the stand-in: the largest one it took, plus what
  is missing to the measured bytes. Negative: even without any workspace we would be above;
* `candidates` counts the workspaces of all plans that it has for these convolutions (cudnn.benchmark=True has every one
  of them built), and `nearest_bytes` is the one next to what is needed;
* `explained` says that it lies within 2 MiB, the unit of segments of 10 MiB and more; for smaller workspaces, which come
  in segments of 20 MiB, that what is needed is between none and 20 MiB.

Writes bench/accuracy/residual.csv, one line a measured peak. Nothing is fitted: no figure here flows back. What was
computed is kept in build/accuracy (residual_*.json), so that an interrupted run, which takes half an hour, goes on; lines of
models that --only leaves out stay as they are.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from run import CACHE, ENVIRONMENTS, GPUS, HERE, TONNAGE, our_bytes, percent, spread, variant_of

MIB = 1 << 20
RESULTS = HERE / "residual.csv"
FIELDS = ["model", "optimizer", "batch_size", "zero_grad_variant", "gpu", "ground_bytes", "constant_bytes",
          "constant_error_percent", "stand_in_bytes", "stand_in_error_percent", "largest_workspace_bytes",
          "needed_workspace_bytes", "candidates", "nearest_bytes", "explained"]  # fmt: skip
BENCHMARK = ("import runpy, sys, torch; torch.backends.cudnn.benchmark = True; sys.argv = sys.argv[1:]; "
             "sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')")
SMALL, SEGMENT = 20 * MIB, 2 * MIB


def newer_cudnn():
    found = sorted((ENVIRONMENTS / "torch-2.11.0").glob("lib/python*/site-packages/nvidia/cudnn/lib/libcudnn.so.9"))
    return found[-1] if found else sys.exit("the environment torch-2.11.0 is missing: tools/envs torch-2.11.0")


def plan_workspaces(cache):
    """Workspaces of all plans that cuDNN was asked for: the records of doc/design/0013 and src/dnn/cache.h."""
    found = set()
    for path in cache.rglob("*.answers"):
        data, at = path.read_bytes(), 8
        while at + 24 <= len(data):
            length = struct.unpack_from("<I", data, at + 16)[0]
            version, status, rows = struct.unpack_from("<III", data, at + 24)
            if length == 20 and status == 0 and rows == 1:  # a plan's answer: nothing but its workspace
                found.add(struct.unpack_from("<q", data, at + 36)[0])
            at += 24 + length
    return found


def run(row, program, folder):
    """The report of one run with the stand-in."""
    words = [row["model"], row["optimizer"], row["batch_size"], variant_of(row)]
    python = ENVIRONMENTS / "torch-2.6.0/bin/python"
    report = folder / "report.json"
    command = [TONNAGE, "run", "--quiet", "--steps=all", f"--gpu={GPUS[row['gpu']]}", "--json", report, "--", python]
    environment = {**os.environ, "TONNAGE_CUDNN": str(newer_cudnn()), "XDG_CACHE_HOME": str(folder / "cache")}
    subprocess.run([*command, *program, HERE / "job.py", *words], env=environment, cwd=folder, capture_output=True)
    return json.loads(report.read_text())


def key_of(row):
    return (row["model"], row["optimizer"], row["batch_size"], variant_of(row), row["gpu"])


def measure(row):
    """Bytes of the run with the stand-in's choice, its largest workspace, and the workspaces of all of its plans; from
    build/accuracy when they are known."""
    kept = CACHE / ("residual_" + "_".join(key_of(row)).replace("/", "-").replace(" ", "-") + ".json")
    if not kept.exists():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ours = our_bytes(run(row, [], folder))
            largest = max(plan_workspaces(folder / "cache"), default=0)
            run(row, ["-c", BENCHMARK], folder)
            found = [ours, largest, sorted(plan_workspaces(folder / "cache"))]
        kept.write_text(json.dumps(found))
        print(*key_of(row), file=sys.stderr)
    return json.loads(kept.read_text())


def line_of(row, ours, largest, candidates):
    ground = int(row["ground_bytes"])
    line = {field: row[field] for field in FIELDS if field in row}
    line.update(constant_bytes=row["our_bytes"], constant_error_percent=row["error_percent"], stand_in_bytes=ours,
                stand_in_error_percent=percent(ours, ground), candidates=len(candidates))
    if ours is None or not candidates:
        return line
    needed = largest + ground - ours
    nearest = min(candidates, key=lambda size: abs(size - needed))
    small = min(candidates) < SMALL // 2 and 0 <= needed <= SMALL
    explained = abs(nearest - needed) <= SEGMENT or small
    line.update(largest_workspace_bytes=largest, needed_workspace_bytes=needed, nearest_bytes=nearest,
                explained=str(explained).lower())
    return line


def kept_lines():
    if not RESULTS.exists():
        return []
    with open(RESULTS, newline="") as file:
        return list(csv.DictReader(file))


def summarize(lines):
    for name in ("constant", "stand_in"):
        print(f"{name}: {spread([float(line[f'{name}_error_percent']) for line in lines])}")
    told = [line for line in lines if line.get("explained")]
    missing = [line for line in told if line["explained"] == "false"]
    print(f"no candidate plan of the newer cuDNN has the workspace that would close the residual: {len(missing)} of "
          f"{len(told)} configurations")
    for line in missing:
        print(f"    {line['model']} {line['optimizer']} {line['batch_size']} {line['gpu']}: needs "
              f"{int(line['needed_workspace_bytes']) / MIB:.1f} MiB, nearest {int(line['nearest_bytes']) / MIB:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose name holds this")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    options = parser.parse_args()
    with open(HERE / "results.csv", newline="") as file:
        known = {}
        for row in csv.DictReader(file):
            if row["kind"] == "cnn" and row["error_percent"] and options.only in row["model"]:
                known.setdefault(tuple(row[field] for field in FIELDS[:5]) + (row["ground_bytes"],), row)
    CACHE.mkdir(parents=True, exist_ok=True)
    configurations = {key_of(row): row for row in known.values()}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = dict(zip(configurations, pool.map(measure, configurations.values())))
    lines = [line_of(row, *answers[key_of(row)]) for row in known.values()]
    lines = [line for line in kept_lines() if options.only not in line["model"]] + lines
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: [line["model"], line["optimizer"], int(line["batch_size"])]))
    summarize(lines)


if __name__ == "__main__":
    main()
