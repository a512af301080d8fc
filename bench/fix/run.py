#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` on real programs, each on a card that is too small: what it finds, how many trials and seconds it takes, and
whether its first entry fits when it is applied.

    bench/fix/run.py [--only TEXT] [--share 0.68] [--forked | --plain]

The card has 68 % of what the unchanged program needs (issue: 60 to 75 %). Each job is searched twice, with forked trials and with
fresh processes (--fresh), for the gain of forking; both searches may use all cores. --plain searches a third time with fresh
processes one after the other, for the gain of both together; --forked leaves all but the first search out. `import_seconds` is a
bare Python with the program's imports; `forked_trial_seconds` the mean of trials that run side by side, `least` the quickest.
`again` is the verdict of a plain run with the first entry, `same` whether its peak is to the byte what the list says. gpt2 is
the small one, for the seconds of a trial; the other ten are those of the issue. Writes bench/results/fix.csv.
"""

import argparse
import ast
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402

UNIT = 2 << 20
FIELDS = [
    "job", "peak_bytes", "memory_bytes", "first_entry", "results", "saved_bytes", "step_time_ratio", "fitting", "again", "same",
    "import_seconds", "trials", "forked_trials", "seconds_to_first", "seconds", "fresh_trial_seconds", "forked_trial_seconds",
    "forked_trial_least", "fresh_trials", "fresh_seconds_to_first", "fresh_seconds", "plain_trials", "plain_seconds_to_first",
    "plain_seconds", "not_forked_because",
]


def jobs():
    """(name, words of the program) of each."""
    for path in sorted((HERE / "jobs").glob("*.py")):
        if path.stem == "gpt2":
            yield "gpt2", [path]
            yield "gpt2_medium", [path, "--medium"]
        elif path.stem != "data":
            yield path.stem, [path]


def tonnage(command, options, job, folder):
    """(finished process, its document) of a command on a job."""
    out = pathlib.Path(folder) / "out.json"
    out.unlink(missing_ok=True)
    words = [TONNAGE, command, "--quiet", "--gpu=h200", "--json", out, *options, "--", PYTHON, *job]
    done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True)
    return done, json.loads(out.read_text()) if out.exists() else {}


def import_seconds(job):
    tree = ast.parse(job[0].read_text())
    lines = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    began = time.monotonic()
    subprocess.run([PYTHON, "-c", "\n".join(lines)], cwd=job[0].parent, check=True, capture_output=True)
    return time.monotonic() - began


SEARCHES = [("", []), ("fresh_", ["--fresh"]), ("plain_", ["--fresh", "--jobs=1"])]


def measure(name, job, share, searches, folder):
    import_seconds(job)  # warms the cache
    unchanged = tonnage("run", ["--memory=1024GiB"], job, folder)[1]
    peak = unchanged["peak"]["device_bytes"]
    memory = int(share * peak) // UNIT * UNIT
    row = {"job": name, "peak_bytes": peak, "memory_bytes": memory, "import_seconds": round(import_seconds(job), 1)}
    card = f"--memory={memory}"
    for prefix, options in SEARCHES[:searches]:
        found = tonnage("fix", [card, *options], job, folder)[1]
        row |= {prefix + "trials": found["trials"], prefix + "seconds": round(found["seconds"], 1),
                prefix + "seconds_to_first": round(found["seconds_to_first"] or -1, 1)}  # fmt: skip
        if not prefix:
            changes = found
    took = {name: value and round(value, 2) for name, value in changes["trial_seconds"].items()}
    row |= {"forked_trials": changes["forked_trials"], "not_forked_because": changes["not_forked_because"] or "",
            "fresh_trial_seconds": took["fresh"], "forked_trial_seconds": took["forked"],
            "forked_trial_least": took["forked_least"]}  # fmt: skip
    fitting = [change for change in changes["changes"] if change["fits"]]
    row["fitting"] = len(fitting)
    if fitting:
        first = fitting[0]
        again = apply(first["id"], card, job, folder)
        row |= {"first_entry": first["id"], "results": first["results"], "saved_bytes": first["saved_bytes"],
                "step_time_ratio": first["step_time_ratio"] and round(first["step_time_ratio"], 2), "again": again["verdict"],
                "same": again["peak"]["device_bytes"] == first["peak_device_bytes"]}  # fmt: skip
    return row


def apply(change, card, job, folder):
    """The report of a plain run with a change."""
    out = pathlib.Path(folder) / "again.json"
    words = [TONNAGE, "run", "--quiet", "--gpu=h200", card, "--json", out, "--", PYTHON, *job]
    environment = {**os.environ, "TONNAGE_CHANGES": change}
    subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, env=environment)
    return json.loads(out.read_text())


def keeps(row):
    kept = row.get("results") in ("same", "same_up_to_rounding")
    return kept and row.get("again") == "fits" and str(row.get("same")) == "True"


def write(path, rows):
    """After each job: what was measured is not lost when a later one fails."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--forked", action="store_const", const=1, dest="searches", help="only the first search")
    parser.add_argument("--plain", action="store_const", const=3, dest="searches", help="with a search without any parallel trials")
    parser.add_argument("--share", type=float, default=0.68)
    parser.set_defaults(searches=2)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/fix.csv")
    options = parser.parse_args()
    rows = {}
    if options.output.exists():
        rows = {row["job"]: row for row in csv.DictReader(options.output.open(newline=""))}
    for name, job in jobs():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = rows[name] = measure(name, job, options.share, options.searches, folder)
        print("  ".join(f"{field}={row.get(field, '')}" for field in FIELDS), flush=True)
        write(options.output, rows)
    kept = sum(map(keeps, rows.values()))
    print(f"{kept} of {len(rows)} end with a change that keeps the results, fits when applied and has the peak that was listed")
    return 0 if kept == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
