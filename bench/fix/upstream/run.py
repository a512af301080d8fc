#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` on upstream scripts that do not fit, against what an expert wrote down before (table.toml).

    bench/fix/upstream/run.py --sources DIRECTORY [--only TEXT]

The directory has a checkout of each repository, under its last name, with the data that `needs` names. Each script is searched
once; the command line of the first entry is then run as it stands. `right`: the first entry is the expert's. `same`: that
run's peak is to the byte what the list says. Writes bench/results/fix_upstream.csv.
"""

import argparse
import csv
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402

FIELDS = ["script", "needed_bytes", "missing_bytes", "first_entry", "results", "right", "again", "same", "trials",
          "seconds_to_first", "seconds"]  # fmt: skip


def tonnage(command, row, words, folder):
    """The document of a command on a program, or {}."""
    with tempfile.TemporaryDirectory() as out:
        path = pathlib.Path(out) / "out.json"
        card = ["--gpu", row["gpu"], *(["--memory", row["memory"]] if "memory" in row else [])]
        line = [TONNAGE, command, "--quiet", *card, "--json", path, "--", *words]
        subprocess.run(list(map(str, line)), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(path.read_text()) if path.exists() else {}


def measure(row, sources):
    """One row of the table of results."""
    folder = sources / row["repository"].split("/")[1]
    found = tonnage("fix", row, [PYTHON, row["script"], *row["arguments"]], folder)
    first = next((change for change in found.get("changes", []) if change["fits"]), None)
    line = {"script": row["name"], **{name: found.get("unchanged", {}).get(name) for name in FIELDS[1:3]},
            **{name: found.get(name) for name in FIELDS[8:]}}  # fmt: skip
    if first is None:
        return {**line, "right": False}
    line.update(first_entry=first["id"], results=first["results"], right=first["id"] == row["expert"])
    if first["command"] is not None:
        again = tonnage("run", row, shlex.split(first["command"]), folder)
        line.update(again=again.get("verdict"), same=again.get("peak", {}).get("device_bytes") == first["peak_device_bytes"])
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rows = [row for row in tomllib.loads((HERE / "table.toml").read_text())["script"] if arguments.only in row["name"]]
    with open(ROOT / "bench/results/fix_upstream.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS)
        writer.writeheader()
        for row in rows:
            writer.writerow(measure(row, arguments.sources.resolve()))
            out.flush()


if __name__ == "__main__":
    main()
