#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train, then resume, by five frameworks, without a mistake and with one: is it named, does `tonnage fix --then` cure it, and does the
patched program resume in the room shown?

    bench/resume/run.py [--show] [NAME ...]

table.toml says what is right before anything is run. Writes bench/results/resume.csv. Tests run the same (tests/vgpu/test_resume.py).
"""

import csv
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402
from runs import commit, document_at  # noqa: E402

CSV = ROOT / "bench/results/resume.csv"
FIELDS = ["name", "named", "cures", "first", "room", "fix_peak_bytes", "patched_peak_bytes", "right", "missing", "seconds", "build"]
OF_RESUMING = {"checkpoint_held", "checkpoint_on_card", "optimizer_state_twice", "model_copy"}
MORE = 1 << 20  # an optimizer's steps
WHOLE = 8 << 20  # PyTorch leaves a block whole where up to 1 MiB would be left of it: peaks differ by that, too


def programs():
    return tomllib.loads((HERE / "table.toml").read_text())["program"]


class Folder:
    """A copy of the program in a folder of its own, and `tonnage` started there."""

    def __init__(self, path, row, python=PYTHON):
        self.path, self.row, self.python = pathlib.Path(path), row, python
        shutil.copy(HERE / row["file"], self.path)

    def command(self, which):
        return [str(self.python), self.row["file"], *self.row[which].split()]

    def start(self, words):
        return subprocess.run(words, cwd=self.path, capture_output=True, text=True, timeout=600)

    def tonnage(self, verb, options, *commands):
        """(status, the document, what was printed)"""
        out = self.path / "out.json"
        out.unlink(missing_ok=True)
        first, *others = map(self.command, commands)
        then = [word for other in others for word in ("--then", " ".join(other))]
        words = [TONNAGE, verb, "--gpu=rtx3060", f"--memory={self.row['memory']}", "--json", out, *then, *options, "--", *first]
        done = self.start(list(map(str, words)))
        if "--show" in sys.argv:
            print(done.stderr)
        return done.returncode, document_at(out), done.stderr


def named(execution):
    return {row["id"]: row["bytes"] for row in execution["findings"] if row["id"] in OF_RESUMING}


def near(found, wished):
    return found is not None and wished <= found < wished + MORE


def as_much(saved, wished):
    return saved is not None and abs(saved - wished) < WHOLE


def missing_of_run(folder):
    """What `run --then` does not say of the three commands."""
    row, wrong = folder.row, []
    _, document, shown = folder.tonnage("run", [], "train", "right", "wrong")
    executions = (document or {}).get("executions") or []
    if [one["verdict"] for one in executions] != ["fits", "fits", "out_of_memory"]:
        return [f"verdicts {[one['verdict'] for one in executions]}"], shown
    for one in executions[:2]:
        if named(one):
            wrong.append(f"without the mistake: {named(one)}")
    found = named(executions[2])
    if set(found) != set(row["named"]) or not all(near(found[name], size) for name, size in row["named"].items()):
        wrong.append(f"named {found}")
    first = executions[2]["findings"][0] if executions[2]["findings"] else None
    if first is None or first["id"] not in row["named"]:
        wrong.append(f"first is {first and first['id']}")
    at = [each["at"] for each in executions[2]["findings"] if each["id"] in row["named"]]
    lines = (folder.path / row["file"]).read_text().splitlines()
    if not at or not all(place and place["file"].endswith(row["file"]) and row["line"] in lines[place["line"] - 1] for place in at):
        wrong.append(f"named at {at}")
    return wrong, shown


def missing_of_fix(folder, figures):
    """What `fix --then` does not do about the mistake: its changes, and the program that each one's patch leaves."""
    row, wrong = folder.row, []
    status, document, shown = folder.tonnage("fix", [], "train", "wrong")
    changes = {each["id"]: each for each in (document or {}).get("changes", []) if len(each["combination"]) <= 1}
    fitting = [each["id"] for each in (document or {}).get("changes", []) if each["outcome"] == "fits"]
    figures.update(first=fitting[0] if fitting else None)
    if status != 0 or figures["first"] not in row["cures"]:
        wrong.append(f"fix ends with {status}, first {figures['first']}")
    for name, saved in row["cures"].items():
        change = changes.get(name)
        if change is None or change["outcome"] != "fits" or not as_much(change["saved_bytes"], saved):
            wrong.append(f"{name}: {change and (change['outcome'], change['saved_bytes'])}")
            continue
        if not change["patch"]:
            wrong.append(f"{name}: no patch")
            continue
        wrong += missing_of_patched(folder, change, figures if name == figures["first"] else {})
    return wrong, shown


def missing_of_applied(folder, name):
    """The same of one change, without a search: its patch is, so what it takes is not known before."""
    patch = folder.path / "fix.diff"
    status, _, shown = folder.tonnage("fix", ["--apply", name, "--patch", patch, "--quiet"], "train", "wrong")
    if status != 0:
        return [f"{name} applied: status {status}"], shown
    return missing_of_patched(folder, {"id": name, "patch": patch.read_text(), "peak_reserved_bytes": None}, {}), shown


def missing_of_patched(folder, change, figures):
    with tempfile.TemporaryDirectory() as name:
        patched = type(folder)(name, folder.row, folder.python)
        done = subprocess.run(["patch", "-p0", patched.row["file"]], cwd=name, input=change["patch"], capture_output=True, text=True)
        if done.returncode != 0:
            return [f"{change['id']}: patch: {done.stdout}"]
        _, document, _ = patched.tonnage("run", [], "train", "wrong")
    executions = (document or {}).get("executions") or []
    if [one["verdict"] for one in executions] != ["fits", "fits"]:
        return [f"{change['id']}, patched: {[one['verdict'] for one in executions]}"]
    peak, named_still = executions[1]["peak"]["reserved_bytes"], named(executions[1])
    figures.update(fix_peak_bytes=change["peak_reserved_bytes"], patched_peak_bytes=peak)
    wrong = [] if change["peak_reserved_bytes"] in (None, peak) else [f"{change['id']}: peak {peak}, {change['peak_reserved_bytes']} said"]
    return wrong + ([f"{change['id']}, patched: {named_still}"] if named_still and change["id"] == "map_location" else [])


def judge(row):
    began, figures = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name, row)
        missing = missing_of_run(folder)[0] + missing_of_fix(folder, figures)[0]
    return {"name": row["name"], "named": " ".join(row["named"]), "cures": " ".join(row["cures"]), "room": row["memory"], **figures,
            "right": "no" if missing else "yes", "missing": "; ".join(missing), "seconds": f"{time.monotonic() - began:.0f}", "build": commit()}  # fmt: skip


if __name__ == "__main__":
    rows = programs()
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    kept = {each["name"]: each for each in csv.DictReader(CSV.open())} if CSV.exists() else {}
    for row in rows:
        if not wanted or row["name"] in wanted:
            kept[row["name"]] = judge(row)
            print(kept[row["name"]], flush=True)
            with CSV.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(kept[each["name"]] for each in rows if each["name"] in kept)
