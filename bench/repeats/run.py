#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases that an earlier build got wrong: what is right, and what today's build says.

    bench/repeats/run.py [--only TEXT] [--long] [--again] [--jobs N] [--patience X] [--check]

table.toml has a row for each case: what was said before, what is right and why, and the proof: commands with what their end, their
report and their text must hold, tests of tests/ that prove it, rows of bench/programs, or figures of another bench. What a case
gave is kept in build/repeats/NAME.json; a second call runs only what this build has not run, so that it may be stopped at any
time. Cases marked `long` run with --long only. At the end bench/results/repeats.csv and doc/repeats.md are written; cases that were
not run keep their row, whose commit says how old it is. --check runs nothing.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import sys
import tempfile
import tomllib
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import runs  # noqa: E402
from places import ROOT, TONNAGE  # noqa: E402

STATE = ROOT / "build/repeats"
CSV = ROOT / "bench/results/repeats.csv"
PAGE = ROOT / "doc/repeats.md"
TESTS = "torch-2.11.0"  # the environment that has pytest
FIELDS = ["case", "cites", "right", "now", "why", "seconds", "commit"]
SECONDS = 300


def cases():
    """The rows of the table, in its order."""
    rows = tomllib.loads((HERE / "table.toml").read_text())["case"]
    assert len({row["name"] for row in rows}) == len(rows), "two cases of one name"
    return rows


# ---- what a command must give ----


def value_at(document, path):
    """report.json at a dotted path; a list stands for its length."""
    for name in path.split("."):
        document = document[int(name)] if isinstance(document, list) and name.isdigit() else (document or {}).get(name)
    return len(document) if isinstance(document, list) else document


def is_wanted(value, wanted):
    """A list of two numbers is a range, every other list the values that are right."""
    if isinstance(wanted, list):
        if all(isinstance(number, int) for number in wanted):
            return isinstance(value, (int, float)) and wanted[0] <= value <= wanted[1]
        return value in wanted
    return value == wanted


def faults_of(proof, status, document, text):
    """What of an end is not as it must be."""
    if status is None:
        yield "its time was up"
    if "status" in proof and status not in proof["status"]:
        yield f"status {status}"
    for path, wanted in proof.get("report", {}).items():
        found = value_at(document, path)
        if not is_wanted(found, wanted):
            yield f"{path} is {found}, not {wanted}"
    flat = " ".join(text.split())
    for pattern in proof.get("says", []):
        if not re.search(pattern, flat):
            yield f"does not say '{pattern}'"
    for pattern in proof.get("never", []):
        found = re.search(pattern, flat)
        if found:
            yield f"says '{found.group()}'"


def told(proof, status, document, text):
    """What a command gave, for a reader."""
    flat = " ".join(text.split())
    quotes = [re.search(pattern, flat) for pattern in proof.get("says", [])]
    words = [f"{document['verdict']}, " if document.get("verdict") else "", f"status {'none' if status is None else status}"]
    words += [f", {path} {value_at(document, path)}" for path in proof.get("report", {}) if path != "verdict"]
    words += [f", \"{quote.group()[:160]}\"" for quote in quotes if quote]
    return "".join(words)


# ---- kinds of proof ----


def environment_of(python, folder, mark, more):
    known = {"PATH": f"{python.parent}:{os.environ['PATH']}", "TMPDIR": str(folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
             "COLUMNS": "200", runs.MARK: mark}  # fmt: skip
    return {**os.environ, **known, **more}


def run_command(row, proof, options):
    """One command in a folder of its own; `run` and `fix` as the first word are Tonnage's."""
    python = runs.python_of(proof.get("env", TESTS))
    with tempfile.TemporaryDirectory(prefix="r") as name:  # short: sockets lie beneath it
        folder = pathlib.Path(name)
        (folder / "work").mkdir()
        report = folder / "report.json"
        places = {"python": python, "here": HERE, "tonnage": TONNAGE}
        words = [str(HERE / word) if (HERE / word).is_file() else word.format(**places) for word in proof["command"]]
        if words[0] == "run":
            words[1:1] = ["--json", report]
        if words[0] in ("run", "fix"):
            words.insert(0, TONNAGE)
        environment = environment_of(python, folder, runs.new_mark(), proof.get("environment", {}))
        seconds = proof.get("seconds", SECONDS) * options.patience
        status, taken, text, left = runs.start(words, folder / "work", environment, seconds, folder / "log")
        document = runs.document_at(report)
    with open(STATE / "logs" / f"{row['name']}.txt", "a") as log:
        log.write(f"$ {' '.join(map(str, words))}\n{text}\n")
    faults = list(faults_of(proof, status, document, text)) + ([f"{left} processes were left behind"] if left else [])
    return faults, told(proof, status, document, text), taken


def run_tests(row, tests, options):
    """Tests of one folder that prove a case, by their names."""
    with tempfile.TemporaryDirectory(prefix="r") as name:
        out = pathlib.Path(name) / "tests.xml"
        words = [runs.python_of(TESTS), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={out}", *tests]
        environment = {**os.environ, runs.MARK: runs.new_mark()}
        seconds = 2 * SECONDS * options.patience
        status, taken, text, _ = runs.start(words, ROOT, environment, seconds, pathlib.Path(name) / "log")
        found = list(xml.etree.ElementTree.parse(out).getroot().iter("testcase")) if out.exists() else []
    bad = [case.get("name") for case in found if {child.tag for child in case} & {"failure", "error"}]
    skipped = sum(case.find("skipped") is not None for case in found)
    passed = len(found) - len(bad) - skipped
    faults = [f"{name} failed" for name in bad] or ([] if status == 0 and passed else [f"pytest ended with {status}, {skipped} skipped"])
    with open(STATE / "logs" / f"{row['name']}.txt", "a") as log:
        log.write(text)
    return faults, f"{passed} of {len(found)} tests passed" + (f", {skipped} skipped" if skipped else ""), taken


def folders_of(tests):
    """Tests by their folder: each has a conftest of its own."""
    rows = {}
    for test in tests:
        rows.setdefault(test.rpartition(".py")[0].rpartition("/")[0], []).append(test)
    return rows.values()


def look_up(row, name):
    """The row of another bench's results: file:program:column<=limit, or file:program for what it says is right."""
    file, program, *limit = name.split(":")
    with open(ROOT / f"bench/results/{file}.csv", newline="") as handle:
        found = next((values for values in csv.DictReader(handle) if values["program"] == program), None)
    if found is None:
        return [f"{program} has no result"], f"{program}: no result"
    if limit:
        column, most = limit[0].split("<=")
        value = float(found[column])
        return [] if value <= float(most) else [f"{program}: {column} {value}, not {most}"], f"{program}: {column} {value}"
    why = [] if found["right"] == "yes" else [f"{program}: {found['why']}"]
    peak = f", {int(found['peak_bytes']) / (1 << 30):.2f} GiB" if found["peak_bytes"] else ""
    return why, f"{program}: {found['verdict']}{peak}"


def run(row, options, build):
    faults, now, seconds = [], [], 0.0
    (STATE / "logs").mkdir(parents=True, exist_ok=True)
    (STATE / "logs" / f"{row['name']}.txt").unlink(missing_ok=True)
    for proof in row.get("run", []):
        bad, words, taken = run_command(row, proof, options)
        faults, seconds = faults + bad, seconds + taken
        now.append(f"{proof['what']}: {words}" if "what" in proof else words)
    for tests in folders_of(row.get("tests", [])):
        bad, words, taken = run_tests(row, tests, options)
        faults, seconds = faults + bad, seconds + taken
        now.append(words)
    result = {"build": build, "faults": faults, "now": now, "seconds": round(seconds, 1), "commit": runs.commit()}
    path = STATE / f"{row['name']}.json"
    path.with_suffix(".new").write_text(json.dumps(result))
    path.with_suffix(".new").replace(path)
    return result


# ---- results ----


def stored(row):
    path = STATE / f"{row['name']}.json"
    return json.loads(path.read_text()) if path.exists() else None


def record(row, result):
    """A row of the CSV."""
    faults, now = list(result["faults"]), list(result["now"])
    for name in row.get("results", []):
        bad, words = look_up(row, name)
        faults += bad
        now.append(words)
    right = "no" if faults else "not known" if "unknown" in row else "yes"
    why = "; ".join(faults) or row.get("unknown", "")
    if faults and "wrong" in row:
        why = f"{row['wrong']} ({why})"
    return {"case": row["name"], "cites": row["cites"], "right": right, "now": "; ".join(now), "why": why,
            "seconds": result["seconds"], "commit": result["commit"]}  # fmt: skip


HEAD = """# Cases that were wrong

Generated by `bench/repeats/run.py`; do not edit. An earlier build (commit 6151ff1, torch 2.11.0) was tried on some 140 programs of
others. This is what it got wrong there, what is right, and what the build that is named says now. "Cause" counts the first causes
on frameworks and libraries, "defect" those seen in training scripts, "promise" the promises of safety that broke. How each is
shown stands in `bench/repeats/table.toml`; tests are named there.

{tally}

| case | of | before | right | now | is it right? |
|---|---|---|---|---|---|
"""


def tally(rows, records):
    count = {answer: sum(values["right"] == answer for values in records.values()) for answer in ("yes", "no", "not known")}
    without = [row["name"] for row in rows if row["name"] not in records]
    text = f"Of {len(rows)} cases: right {count['yes']}, wrong {count['no']}, not known without cards {count['not known']}"
    text += f", not run {len(without)} ({', '.join(without)})." if without else "."
    return f"{text} Commits: {', '.join(sorted({values['commit'] for values in records.values()}))}."


def page(rows, records):
    text = HEAD.format(tally=tally(rows, records))
    for row in rows:
        values = records.get(row["name"], {"now": "not run", "right": "", "why": ""})
        answer = values["right"] + (f": {values['why']}" if values["why"] else "")
        cells = [row["title"], row["cites"], row["before"], row["right"], values["now"], answer]
        text += "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |\n"
    return text


def write(rows):
    records = {}
    if CSV.exists():
        with open(CSV, newline="") as file:
            records = {values["case"]: values for values in csv.DictReader(file)}
    records.update({row["name"]: record(row, stored(row)) for row in rows if stored(row)})
    records = {row["name"]: records[row["name"]] for row in rows if row["name"] in records}
    with open(CSV, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records.values())
    PAGE.write_text(page(rows, records))
    return records


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds it")
    parser.add_argument("--long", action="store_true", help="also those that take minutes")
    parser.add_argument("--again", action="store_true", help="also what this build has run")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at once")
    parser.add_argument("--patience", type=float, default=1, metavar="X", help="times the time limits, for a busy machine")
    parser.add_argument("--check", action="store_true", help="run nothing, judge what is stored")
    return parser.parse_args()


def main():
    options = arguments()
    rows, build = cases(), runs.build_key()
    todo = []
    for row in rows:
        wanted = options.only in row["name"] and (options.long or not row.get("long"))
        if wanted and (options.again or (stored(row) or {}).get("build") != build):
            todo.append(row)
    todo = [] if options.check else todo
    environments = {proof.get("env", TESTS) for row in todo for proof in row.get("run", [])}
    missing = sorted(name for name in environments if not runs.python_of(name).exists())
    if missing:
        sys.exit(f"run.py: environments are missing: tools/envs {' '.join(missing)}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run, row, options, build): row for row in todo}
        for job in concurrent.futures.as_completed(jobs):
            values = record(jobs[job], job.result())
            print(f"{values['right']:9} {values['case']:28} {values['seconds']:6} s  {values['why']}", flush=True)
    records = write(rows)
    wrong = [row["name"] for row in rows if records.get(row["name"], {"right": "no"})["right"] == "no" and "wrong" not in row]
    print(tally(rows, records))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
