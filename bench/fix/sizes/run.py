#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` on programs of the sizes that people ask about, without weights (table.toml), as bench/fix/upstream does it.

    bench/fix/sizes/run.py [--only TEXT]

Of the models only headers are made. The first entry, its command line or the program with its patch, is then run as it stands. Rows that are
there stay where they are not asked for; bench/results/fix_sizes.csv.
"""

import argparse
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "upstream"))
import run as upstream  # noqa: E402

RESULTS = upstream.ROOT / "bench/results/fix_sizes.csv"
MAKE = upstream.ROOT / "bench/weights/make.py"
FIELDS = ["script", "gpu", "needed_bytes", "missing_bytes", "first_entry", "results", "right", "again", "same", "trials", "seconds_to_first",
          "seconds", "cpu", "build"]  # fmt: skip


def measure(row):
    """The row of the results of a row of the table, measured in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for program in HERE.glob("*.py"):
            shutil.copy(program, work / program.name)
        if "model" in row:
            subprocess.run([sys.executable, MAKE, work / "model", row["model"], "headers"], check=True)
        start = [word.replace("{model}", str(work / "model")) for word in row["start"]]
        row = {"repository": "of/work", "environment": "prog-weights", **row, "start": start, "arguments": []}
        (work / "work").symlink_to(work)
        line = upstream.measure(row, work, None)
    line["right"] = line.get("first_entry") in row["expert"] and line.get("again") == "fits"  # experts of these name other trainings, too
    return {name: value for name, value in {**line, "gpu": row["gpu"], "build": upstream.commit()}.items() if name in FIELDS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    table = tomllib.loads((HERE / "table.toml").read_text())["script"]
    known = {row["script"]: row for row in csv.DictReader(RESULTS.open())} if RESULTS.exists() else {}
    for row in table:
        if options.only in row["name"]:
            known[row["name"]] = measure(row)
            print(known[row["name"]], flush=True)
            with RESULTS.open("w", newline="") as out:
                writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(known[each["name"]] for each in table if each["name"] in known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
