#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds of whole `tonnage run`s of trainings with many epochs, beside what importing their packages takes.

    bench/whole_runs/run.py [--repeat 3] [--only TEXT]

Each program is run --repeat times; the quickest run counts, since a busy machine only adds. `import_seconds` is a bare Python that
imports torch and the packages of that program, in the same turn; `ratio` is the one by the other. `cpu_seconds` is what all
processes of the quickest run used together: on a machine that is busy with others it says more than the clock.
`compiled_again` is `compiled` a second time, with the compile cache that the first run left; both use a cache folder of
their own, so that `compiled` is always the first.
Writes bench/results/whole_runs.csv; rows of programs that --only leaves out stay as they are.
"""

import argparse
import csv
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402

RESULTS = ROOT / "bench/results/whole_runs.csv"
FIELDS = ["program", "verdict", "seconds", "import_seconds", "ratio", "cpu_seconds", "steps", "stopped", "device_bytes"]
# name: the program, the package that it imports beside torch, and whether the turns before it left a compile cache
PROGRAMS = {
    "imagenet": ("imagenet.py", "torchvision", None),
    "gpt2": ("gpt2.py", "transformers", None),
    "dcgan": ("dcgan.py", "torchvision", None),
    "mnist": ("mnist.py", "torchvision", None),
    "compiled": ("compiled.py", "torch", "new"),
    "compiled_again": ("compiled.py", "torch", "kept"),
}


def seconds_of(command, cwd, env=None):
    """Wall seconds, CPU seconds of the whole tree, and the exit status."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    status = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started, used, status


def measure(name, repeat, caches):
    program, package, cache = PROGRAMS[name]
    env = {**os.environ, "XDG_CACHE_HOME": caches} if cache else None
    best = None
    for _ in range(repeat):
        if cache == "new":
            shutil.rmtree(caches, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="whole-runs-") as folder:
            imports, _, _ = seconds_of([PYTHON, "-c", f"import torch, {package}"], folder)
            report = pathlib.Path(folder) / "report.json"
            command = [TONNAGE, "run", "--gpu", "rtx4090", "--json", report, "--", PYTHON, HERE / program]
            wall, used, status = seconds_of(command, folder, env)
            if status:
                sys.exit(f"{name}: tonnage run ended with {status}: {' '.join(map(str, command))}")
            found = json.loads(report.read_text())
        if best is None or wall < best["seconds"]:
            best = {"program": name, "verdict": found["verdict"], "seconds": wall, "import_seconds": imports,
                    "ratio": wall / imports, "cpu_seconds": used, "steps": found["steps"]["seen"],
                    "stopped": found["steps"]["stopped"], "device_bytes": found["peak"]["device_bytes"]}  # fmt: skip
    return {key: f"{value:.1f}" if isinstance(value, float) else value for key, value in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    rows = {row["program"]: row for row in csv.DictReader(RESULTS.open())} if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="whole-runs-cache-") as caches:
        for name in PROGRAMS:
            if options.only in name:
                rows[name] = measure(name, options.repeat, caches)
                print("  ".join(f"{key} {value}" for key, value in rows[name].items()), flush=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows[name] for name in PROGRAMS if name in rows)


if __name__ == "__main__":
    main()
