#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores `tonnage explain` against labelled texts.

    bench/explain_score.py FILE.jsonl [--tonnage PATH] [--show ID]

Each line of FILE is an object with `id`, `text`, `is_oom` (yes, no, unclear), `fields`, `likely_cause`, `family` and
`tags`. The labels of a text describe its first complete error: the first one found is compared. Texts labelled `no`
must give an empty list; for the others every field must be equal. Prints accuracy by field, by record and by cause, and
every difference. Ends with 1 when a record differs.

Phase and framework are compared for the texts that show frames of a traceback: explain_places.jsonl has what a person
read from each of them, by its id, before the program was asked. A difference is printed and counted, and does not
change the status.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

PLACES = pathlib.Path(__file__).with_name("explain_places.jsonl")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def explain(tonnage, text):
    """The errors that the command finds in a text."""
    command = tonnage.split() + ["explain", "-", "--json", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)["errors"]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def differences(record, errors):
    """(what, expected, found) for everything that differs."""
    if record["is_oom"] == "no":
        return [("is_oom", "no", errors[0]["is_oom"] + " " + errors[0]["family"])] if errors else []
    if not errors:
        return [("is_oom", record["is_oom"], "no error found")]
    first, found = errors[0], []
    for name, value in record["fields"].items():
        if first["fields"][name] != value:
            found.append((name, value, first["fields"][name]))
    if first["likely_cause"] != record["likely_cause"]:
        found.append(("likely_cause", record["likely_cause"], first["likely_cause"]))
    if first["is_oom"] != record["is_oom"]:
        found.append(("is_oom", record["is_oom"], first["is_oom"]))
    return found


def misplaced(label, errors):
    """(what, expected, found) where phase or framework differ; errors without frames have neither."""
    first = errors[0] if errors else {}
    return [(name, label[name], first.get(name)) for name in ("phase", "framework") if label[name] != first.get(name)]


def rate(good, count):
    return f"{good}/{count} ({100 * good / max(count, 1):.1f} %)"


class Score:
    """Counts over all records."""

    def __init__(self):
        self.field_good, self.field_count = collections.Counter(), collections.Counter()
        self.good = collections.Counter()
        self.count = collections.Counter()
        self.claimed = self.claimed_wrong = 0

    def place(self, label, errors, wrong):
        names = {name for name, _, _ in wrong}
        self.count["place"] += 1
        self.good["phase"] += "phase" not in names
        self.good["framework"] += "framework" not in names
        claims = bool(errors and errors[0].get("phase"))
        self.claimed += claims
        self.claimed_wrong += claims and "phase" in names

    def add(self, record, wrong, several):
        kind = record["is_oom"]
        names = {name for name, _, _ in wrong}
        self.count[kind] += 1
        self.count["several"] += several > 1
        if kind == "no":
            self.good[kind] += not wrong
            return
        detected = not any(found == "no error found" for _, _, found in wrong)
        self.good["detected"] += detected
        fields_good = detected and not names & set(record["fields"])
        self.good[kind] += fields_good
        self.good["cause"] += detected and "likely_cause" not in names
        self.good["certainty"] += detected and "is_oom" not in names
        for name in record["fields"]:
            self.field_count[name] += 1
            self.field_good[name] += detected and name not in names

    def report(self):
        errors = self.count["yes"] + self.count["unclear"]
        for name in self.field_count:
            print(f"  {name:28} {rate(self.field_good[name], self.field_count[name])}")
        print(f"all fields, yes       {rate(self.good['yes'], self.count['yes'])}")
        print(f"all fields, unclear   {rate(self.good['unclear'], self.count['unclear'])}")
        print(f"empty list, no        {rate(self.good['no'], self.count['no'])}")
        print(f"cause                 {rate(self.good['cause'], errors)}")
        print(f"yes or unclear as set {rate(self.good['certainty'], errors)}")
        print(f"phase                 {rate(self.good['phase'], self.count['place'])}")
        print(f"phases claimed wrong  {rate(self.claimed_wrong, self.claimed)}")
        print(f"framework             {rate(self.good['framework'], self.count['place'])}")
        print(f"more than one error found in {self.count['several']} texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--tonnage", default=os.environ.get("TONNAGE", str(ROOT / "build/bin/tonnage")))
    parser.add_argument("--show", help="print the text and the answer for one id")
    arguments = parser.parse_args()
    records = read(arguments.file)
    places = {label["id"]: label for label in read(PLACES)}
    if arguments.show:
        records = [record for record in records if record["id"] == arguments.show]
    score, failed = Score(), 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda record: explain(arguments.tonnage, record["text"]), records)
        for record, errors in zip(records, answers):
            wrong = differences(record, errors)
            score.add(record, wrong, len(errors))
            failed += bool(wrong)
            if record["id"] in places:
                misplaces = misplaced(places[record["id"]], errors)
                score.place(places[record["id"]], errors, misplaces)
                wrong += misplaces
            for name, expected, found in wrong:
                print(f"{record['id']} {record['family']}: {name}: expected {expected}, found {found}")
            if arguments.show:
                print(record["text"], json.dumps(errors, indent=2), sep="\n---\n")
    score.report()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
