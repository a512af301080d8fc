#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimated ratios of step times against published ones (published.csv), into results.csv.

    bench/step_time/run.py [--environment torch-2.6.0] [ROW...]     ROW: numbers of rows, from 1, the others keep their results

Each training runs once on the virtual GPU (job.py), by the wheel that still knows the V100; `error` is
estimate / published - 1, `inside` says whether the published ratio lies between the lowest and the highest estimate.
"""

import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

RELEASE = ROOT / "build/release"
FIELDS = ["name", "gpu", "published", "estimate", "lowest", "highest", "error", "inside", "unchanged_seconds",
          "changed_seconds"]  # fmt: skip


def build(folder):
    """The comparison, linked against what `make build` has left."""
    program = pathlib.Path(folder) / "ratio"
    libraries = sorted(str(path) for path in RELEASE.glob("src/**/*.a"))
    words = ["cc", "-D_GNU_SOURCE", "-I", ROOT / "include", "-I", ROOT / "src", HERE / "ratio.c", "-Wl,--start-group",
             *libraries, "-Wl,--end-group", "-ljansson", "-lzstd", "-lz", "-lm", "-ldl", "-lpthread", "-o", program]  # fmt: skip
    subprocess.run(list(map(str, words)), check=True)
    return program


def work_of(folder, python, gpu, job):
    """The file with what the job's steps did on a card that is never full."""
    path = pathlib.Path(folder) / ("%s %s.tsv" % (gpu, job))
    if not path.exists():
        words = [TONNAGE, "run", "--quiet", "--gpu", gpu, "--memory", "1TiB", "--steps", "all",
                 "--no-detail", "--", python, HERE / "job.py", *job.split()]  # fmt: skip
        done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        path.write_text(done.stdout)
    return path


def write(results):
    with open(HERE / "results.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", default="torch-2.6.0")
    parser.add_argument("rows", nargs="*", type=int)
    options = parser.parse_args()
    python = ENVIRONMENTS / options.environment / "bin/python"
    rows = list(csv.DictReader(open(HERE / "published.csv")))
    known = {}
    if (HERE / "results.csv").exists():
        known = {row["name"]: row for row in csv.DictReader(open(HERE / "results.csv"))}
    with tempfile.TemporaryDirectory() as folder:
        ratio = build(folder)
        for number, row in enumerate(rows, 1):
            if options.rows and number not in options.rows:
                continue
            files = [work_of(folder, python, row["gpu"], row[which]) for which in ("unchanged", "changed")]
            answer = subprocess.run([ratio, row["gpu"], *files], capture_output=True, text=True, check=True).stdout
            estimate, lowest, highest, before, after = answer.strip().split(",")
            published = float(row["published"])
            result = {"name": row["name"], "gpu": row["gpu"], "published": row["published"], "estimate": estimate,
                      "lowest": lowest, "highest": highest, "error": "%+.2f" % (float(estimate) / published - 1),
                      "inside": "yes" if float(lowest) <= published <= float(highest) else "no",
                      "unchanged_seconds": before, "changed_seconds": after}  # fmt: skip
            known[row["name"]] = result
            print(result, flush=True)
            write([known[row["name"]] for row in rows if row["name"] in known])


if __name__ == "__main__":
    main()
