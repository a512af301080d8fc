#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores `tonnage explain` on texts that nobody had looked at while it was written.

    bench/explain_unseen.py TEXTS.jsonl [--labels FILE] [--tonnage PATH] [--record NAME] [--show ID]

TEXTS has an object a line: `id` and `text`. The texts are other people's and stand outside of the project; the labels, facts with
their source, are bench/explain_unseen.jsonl: what a person wrote down before the program was asked. Phase and framework are
compared where the text shows frames (`frames`), figures where the label names them. --record adds a row to
bench/results/explain_unseen.csv; the first row of a set is the honest one, later rows came after mending. Ends with 1 when
causes are below 97 %, or a look-alike is taken for an error.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results/explain_unseen.csv"
COLUMNS = ["set", "run", "texts", "found", "causes", "phases", "frameworks", "with_frames", "ranks", "figures", "figures_of",
           "look_alikes", "taken_for_errors"]  # fmt: skip


def explain(tonnage, text):
    done = subprocess.run([tonnage, "explain", "-", "--json", "-"], input=text.encode(), capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)["errors"]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def figure(error, name):
    if name.endswith("_tokens") or name in ("budget_bytes", "needed_bytes"):
        return (error["need"] or {}).get(name)
    return error["fields"][name]


def compare(label, errors, count):
    """(what, expected, found) for everything that differs."""
    if label["is_oom"] == "no":
        count["look_alikes"] += 1
        count["taken_for_errors"] += bool(errors)
        return [("is_oom", "no", errors[0]["family"])] if errors else []
    count["texts"] += 1
    count["with_frames"] += label["frames"]
    count["figures_of"] += len(label["figures"])
    if not errors:
        return [("is_oom", label["is_oom"], "no error found")]
    first = errors[0]
    count["found"] += first["is_oom"] == label["is_oom"]
    pairs = [("cause", label["likely_cause"], first["likely_cause"], "causes"),
             ("rank", label["rank"], first["fields"]["rank"], "ranks")]  # fmt: skip
    if label["frames"]:
        pairs += [("phase", label["phase"], first["phase"], "phases"), ("framework", label["framework"], first["framework"], "frameworks")]
    pairs += [(name, value, figure(first, name), "figures") for name, value in label["figures"].items()]
    for _, expected, found, counted in pairs:
        count[counted] += expected == found
    return [(name, expected, found) for name, expected, found, _ in pairs if expected != found]


def record(name, run, count):
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    rows = [row for row in rows if (row["set"], row["run"]) != (name, run)]
    rows.append({"set": name, "run": run, **count})
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--labels", type=pathlib.Path, default=HERE / "explain_unseen.jsonl")
    parser.add_argument("--tonnage", default=os.environ.get("TONNAGE", str(ROOT / "build/bin/tonnage")))
    parser.add_argument("--record", nargs=2, metavar=("SET", "RUN"))
    parser.add_argument("--show", help="print the text and the answer for one id")
    arguments = parser.parse_args()
    labels = {label["id"]: label for label in read(arguments.labels)}
    count = dict.fromkeys(COLUMNS[2:], 0)
    for text in read(arguments.texts):
        if text["id"] not in labels or arguments.show not in (None, text["id"]):
            continue
        errors = explain(arguments.tonnage, text["text"])
        for name, expected, found in compare(labels[text["id"]], errors, count):
            print(f"{text['id']} {labels[text['id']]['source']}: {name}: expected {expected}, found {found}")
        if arguments.show:
            print(text["text"], json.dumps(errors, indent=2), sep="\n---\n")
    for name, of in (("found", "texts"), ("causes", "texts"), ("ranks", "texts"), ("phases", "with_frames"),
                     ("frameworks", "with_frames"), ("figures", "figures_of"), ("taken_for_errors", "look_alikes")):  # fmt: skip
        print(f"{name:18} {count[name]}/{count[of]} ({100 * count[name] / max(count[of], 1):.1f} %)")
    if arguments.record:
        record(*arguments.record, count)
    return 1 if count["causes"] < 0.97 * count["texts"] or count["taken_for_errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
