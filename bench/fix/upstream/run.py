#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` on upstream scripts that do not fit, against what an expert wrote down before (table.toml).

    bench/fix/upstream/run.py --sources DIRECTORY [--only TEXT]

The directory has a checkout of each repository, under its last name and at the commit of its row, with the data that data.py
makes or that `needs` names. Each script is searched once; the command line of the first entry, or the script with its patch, is then
run as it stands. `right`: the first entry is the expert's, and its trial kept the results. `as_good`: so it is, or it fits safely, its trial kept the results,
and what the expert wrote down was seen to be slower, not to fit, or to fit only narrowly; the trials say so, and nobody's taste. Where the expert's was not tried, it is outdone only
by what takes no longer than the program as it is, and only where it is more work (accumulation, checkpointing). `first_trial`: the first entry
was tried before all others. A search of which 300 seconds saw no end is ended then, and what it had found counts (`seconds` says so). `same`: that run's peak is to the byte what the list says; where that run
saw other steps than the trial (a cache that grows goes on growing), it is made once more for as many. `nothing_saves`:
what the change that does nothing saves; a row of which that is not 0 makes this end with 1. `build`: the commit that was measured. Seconds were
measured on two cores that other jobs used as well (bench/README.md has the load): `cpu` is what can be compared. A row of which `first_entry` is "not run" was not. `at_first`: the first entry
of the first run of the row, before anything was mended for it, and whether it was right. `cpu`: seconds of processor time of all of it, which a busy machine does not change. Rows
that are there stay where they are not asked for; bench/results/fix_upstream.csv.
"""

import argparse
import csv
import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

RESULTS = ROOT / "bench/results/fix_upstream.csv"
FIELDS = ["script", "needed_bytes", "missing_bytes", "first_entry", "results", "right", "as_good", "first_trial", "again", "same",
          "nothing_saves", "trials", "seconds_to_first", "seconds", "cpu", "at_first", "right_at_first", "build"]  # fmt: skip
PATIENCE = 300  # seconds for a script
MORE_WORK = ("accumulate", "option_accumulate", "checkpoint", "option_checkpoint")
NO_SLOWER = 1.01  # a step's time is an estimate


def tonnage(command, row, words, folder, keep=None, options=()):
    """The document of a command on a program, or {}."""
    with tempfile.TemporaryDirectory() as out:
        path = pathlib.Path(out) / "out.json"
        card = ["--gpu", row["gpu"], *(["--memory", row["memory"]] if "memory" in row else [])]
        line = [TONNAGE, command, "--quiet", *card, *options, "--json", path, "--", *words]
        process = subprocess.Popen(list(map(str, line)), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **row.get("variables", {}), "TONNAGE_TRY": "nothing"})  # fmt: skip
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # it writes what it has found so far
            process.send_signal(signal.SIGINT)
            process.wait()
        text = path.read_text() if path.exists() else "{}"
        if keep is not None:
            (keep / ("%s-%s.json" % (row["name"], command))).write_text(text)
        return json.loads(text)


def commit():
    """The commit of this tree."""
    done = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def words_of(row):
    """The command line of a row."""
    python = ENVIRONMENTS / row.get("environment", "torch-2.11.0") / "bin/python"
    return [str(python), *row["start"], *row["arguments"]]


def saved_by(nothing, unchanged):
    """What the change that does nothing saves, in bytes; None: it was not tried. Where room is not what is missing `fix` tells no saving: then what both
    need on a card that is never full."""
    needs = unchanged.get("needed_bytes"), nothing.get("needed_bytes")
    if nothing.get("saved_bytes") is None and None not in needs:
        return needs[0] - needs[1]
    return nothing.get("saved_bytes")


def run_first(row, first, words, folder):
    """The document of a run of the first entry, as its reader would make it, and one of as many steps as its trial saw."""
    patch = first["patch"]
    settings = [part.partition("=")[2] for part in first["combination"] if part.startswith("alloc=")]
    if settings:  # no patch sets the environment
        row = {**row, "variables": {**row.get("variables", {}), "PYTORCH_ALLOC_CONF": ",".join(settings)}}
    words = shlex.split(first["command"]) if first["command"] else words
    if patch is not None:
        subprocess.run(["patch", "-p1", "--fuzz=0"], cwd=folder, input=patch, text=True, check=True, stdout=subprocess.DEVNULL)
    try:
        again = as_long = tonnage("run", row, words, folder)
        steps = first["steps_seen"]
        if steps and again.get("verdict") == "fits" and again["steps"]["seen"] != steps:
            as_long = tonnage("run", row, words, folder, options=("--steps", steps))
        return again, as_long
    finally:
        if patch is not None:
            subprocess.run(["patch", "-p1", "-R"], cwd=folder, input=patch, text=True, check=True, stdout=subprocess.DEVNULL)


def measure(row, sources, keep):
    """One row of the table of results."""
    folder = sources / row["repository"].split("/")[1] / row.get("folder", "")
    before, words = resource.getrusage(resource.RUSAGE_CHILDREN), words_of(row)
    found = tonnage("fix", row, words, folder, keep)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = next((change for change in found.get("changes", []) if change["fits"]), None)
    nothing = next((change for change in found.get("changes", []) if change["id"] == "nothing"), {})
    line = {"script": row["name"], **{name: found.get("unchanged", {}).get(name) for name in FIELDS[1:3]},
            "trials": found.get("trials"), "right": False, "as_good": False,
            **{name: round(found[name], 1) for name in ("seconds_to_first", "seconds") if found.get(name) is not None},
            "cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
            "nothing_saves": saved_by(nothing, found.get("unchanged", {}))}  # fmt: skip
    if first is None:
        return line
    line.update(as_good=is_as_good(row, first, found["changes"]), first_trial=first["trial"] == 1)
    line.update(first_entry=first["id"], results=first["results"], right=first["id"] in row["expert"] and first["results"] != "different_training")
    if first["patch"] is not None or first["command"] is not None:
        again, as_long = run_first(row, first, words, folder)
        peaks = [run.get("peak", {}).get("device_bytes") for run in (again, as_long)]
        line.update(again=again.get("verdict"), same=first["peak_device_bytes"] in peaks)
        if again.get("verdict") != "fits":  # a wrong promise is neither
            line.update(right=False, as_good=False)
    return line


def is_as_good(row, first, changes):
    """Whether the first entry is worth as much as what the expert wrote down, by what their trials have shown."""
    if first["results"] == "different_training":
        return False
    if first["id"] in row["expert"]:
        return True
    experts = [change for change in changes if change["id"] in row["expert"] and change["outcome"] in ("fits", "not_enough", "no_help")]
    if first["narrowly"]:
        return False
    if not experts:  # what takes more work is no quicker than the program as it is
        more_work = all(part.startswith(MORE_WORK) for words in row["expert"] for part in words.split(","))
        return more_work and first["step_time_ratio"] is not None and first["step_time_ratio"] <= 1
    safe = [change for change in experts if change["fits"] and not change["narrowly"] and change["results"] != "different_training"]
    times = [change["step_time_ratio"] for change in (first, *safe)]
    return None not in times and all(times[0] <= NO_SLOWER * time for time in times[1:]) if safe else True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--build", default=commit(), help="the commit that is measured, where it is not this tree's")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory for the documents of fix")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a patched checkout is put back
    table = tomllib.loads((HERE / "table.toml").read_text())["script"]
    kept = {}
    if arguments.results.exists():
        kept = {line["script"]: line for line in csv.DictReader(arguments.results.open())}
    for row in table:
        if arguments.only not in row["name"]:
            continue
        before, line = kept.get(row["name"], {}), measure(row, arguments.sources.resolve(), arguments.keep)
        line["at_first"] = before.get("at_first") or line.get("first_entry", "nothing fits")
        line["build"] = arguments.build
        line["right_at_first"] = before.get("right_at_first") or line["right"]
        kept[row["name"]] = line
        with open(arguments.results, "w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept[each["name"]] for each in table if each["name"] in kept)
    return told([kept[each["name"]] for each in table if each["name"] in kept])


def told(lines):
    """Prints how many are right, and what the change that does nothing saves where that is not 0; 1 where there is such a row."""
    wrong = [line["script"] for line in lines if str(line["right"]) != "True"]
    saving = {line["script"]: line["nothing_saves"] for line in lines if str(line.get("nothing_saves") or 0) != "0"}
    unknown = [line["script"] for line in lines if line.get("nothing_saves") in (None, "")]
    good = sum(str(line.get("as_good")) == "True" for line in lines)
    print("%d of %d right; wrong: %s" % (len(lines) - len(wrong), len(lines), ", ".join(wrong) or "none"))
    print("%d as good as the expert's, those included" % good)
    print("what does nothing saves: %s; not known: %s" % (saving or "0 in each", ", ".join(unknown) or "none"))
    return 1 if saving else 0


if __name__ == "__main__":
    sys.exit(main())
