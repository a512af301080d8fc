#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other people's programs under `tonnage run`, each held against a verdict that was written down before.

    bench/programs/run.py [--only TEXT [--exact]] [--tags TAG,...] [--jobs N] [--again] [--any-build] [--list] [--check]

table.toml names each program: its environment (tools/requirements), command, card, the verdict that is right, the range of the
peak that is right, and the reason, which is arithmetic by hand, the program's own statement or a published figure. What a run
gave is kept in build/programs/results/NAME.json under a key: the trees of Tonnage's sources, the row, the programs of this
folder that it names and the environment's requirements. A second call runs only what has no result under its key, so that it may
be stopped at any time; --any-build takes results of other builds of Tonnage, too, and --again none. At the end the results of all
programs are written to bench/results/programs.csv and doc/what-runs.md. --check reads the two files and the table only.

Every process that a program leaves behind is ended: those of its group, and all that carry its mark in their environment.
"""

import argparse
import concurrent.futures
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import advice  # noqa: E402
import report  # noqa: E402
import runs  # noqa: E402
from places import ROOT, TONNAGE  # noqa: E402

STATE = ROOT / "build/programs"
SECONDS = 300  # of one run, unless its row says otherwise
GIB = 1 << 30


def programs():
    """The rows of the table, with what they leave out."""
    table = tomllib.loads((HERE / "table.toml").read_text())
    rows = [{**table["defaults"], **row} for row in table["program"]]
    assert len({row["name"] for row in rows}) == len(rows), "two programs of one name"
    return rows


def own_files(row):
    """The files of this folder that a run reads, the helpers that all share included."""
    named = {word for word in row["command"] if (HERE / word).is_file()} | set(row.get("files", []))
    return sorted(HERE / name for name in named | {"made.py"})


def program_key(row):
    requirements = ROOT / f"tools/requirements/{row['env']}.txt"
    run_by = {name: row[name] for name in ("command", "env", "gpu", "options", "model", "environment") if name in row}
    parts = [json.dumps(run_by, sort_keys=True).encode()]
    parts += [path.read_bytes() for path in [requirements, *own_files(row)]]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def model_folder(name):
    """The folder of a checkpoint of true size whose weights are a hole in a file; made at the first call."""
    folder = STATE / "models" / name
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / "models.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = hashlib.sha256((HERE / "made.py").read_bytes()).hexdigest()
        if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([runs.python_of("torch-2.11.0"), HERE / "made.py", name, folder], check=True)
            (folder / "stamp").write_text(stamp)
    return folder


def words_of(row, folder):
    """The command with its places filled in: {python}, {bin}, {here}, {model}, {work}."""
    python = runs.python_of(row["env"])
    places = {"python": python, "bin": python.parent, "here": HERE, "work": folder}
    if "model" in row:
        places["model"] = model_folder(row["model"])
    words = []
    for word in row["command"]:
        words.append(str(HERE / word) if (HERE / word).is_file() else word.format(**places))
    return words


def environment_of(row, folder, mark):
    python = runs.python_of(row["env"])
    known = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(python.parent.parent),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": f"{folder}/hf",
        "TMPDIR": str(folder),
        "YOLO_CONFIG_DIR": f"{folder}/yolo",
        runs.MARK: mark,
    }
    return {**os.environ, **known, **row.get("environment", {})}


def start(row, options, folder):
    """Runs a program under tonnage; returns (status or None, report, seconds, what it printed, processes left behind)."""
    out = folder / "report.json"
    mark = runs.new_mark()
    (folder / "work").mkdir()
    words = [TONNAGE, "run", "--json", out, f"--gpu={row['gpu']}", *row.get("options", []), "--", *words_of(row, folder)]
    status, seconds, text, left = runs.start(
        words, folder / "work", environment_of(row, folder, mark), row.get("seconds", SECONDS) * options.patience, folder / "log")
    return status, runs.document_at(out), seconds, text, left


def run(row, options, keys):
    with tempfile.TemporaryDirectory(prefix="b") as name:  # short: sockets lie beneath it
        status, document, seconds, text, left = start(row, options, pathlib.Path(name))
    result = {
        "name": row["name"], "build": keys[0], "program": keys[1], "commit": runs.commit(), "status": status,
        "seconds": round(seconds, 1), "left": left, "versions": runs.versions(row["env"], row["packages"]), "report": document,
    }  # fmt: skip
    (STATE / "logs").mkdir(parents=True, exist_ok=True)
    (STATE / "logs" / f"{row['name']}.txt").write_text(text)
    path = STATE / "results" / f"{row['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(result))
    path.with_suffix(".new").replace(path)
    return result


def stored(row):
    """The last result of a program as it is now, of whatever build; None where there is none."""
    path = STATE / "results" / f"{row['name']}.json"
    result = json.loads(path.read_text()) if path.exists() else None
    return result if result and result["program"] == program_key(row) else None


def is_fresh(row, build, options):
    result = stored(row)
    if options.again or not result:
        return False
    return options.any_build or result["build"] == build


def chosen(rows, options):
    tags = set(filter(None, options.tags.split(",")))
    for row in rows:
        named = row["name"] == options.only if options.exact else options.only in row["name"]
        if named and (not tags or tags & set(row.get("tags", []))):
            yield row


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name holds it")
    parser.add_argument("--exact", action="store_true", help="--only is the whole name")
    parser.add_argument("--tags", default="", metavar="TAG,...", help="programs with one of the tags")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at once")
    parser.add_argument("--patience", type=float, default=1, metavar="X", help="times the time limit, for a busy machine")
    parser.add_argument("--again", action="store_true", help="also what has a result")
    parser.add_argument("--any-build", action="store_true", help="results of other builds of Tonnage count")
    parser.add_argument("--list", action="store_true", help="only list what there is")
    parser.add_argument("--check", action="store_true", help="run nothing, judge what is stored")
    return parser.parse_args()


def show(row, result):
    verdict = report.judge(row, result)
    peak = report.measured(row, result)
    print(f"{'right' if verdict.right else 'WRONG':5}  {row['name']:34} {str(report.verdict_of(result)):14} "
          f"{peak / GIB if peak else 0:6.2f} GiB  {result['seconds']:6.1f} s  {verdict.why}", flush=True)  # fmt: skip


def run_all(todo, options, build):
    missing = sorted({row["env"] for row in todo if not runs.python_of(row["env"]).exists()})
    if missing:
        sys.exit(f"run.py: environments are missing: tools/envs {' '.join(missing)}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run, row, options, (build, program_key(row))): row for row in todo}
        for job in concurrent.futures.as_completed(jobs):
            show(jobs[job], job.result())


def main():
    options = arguments()
    rows = programs()
    if options.list:
        for row in chosen(rows, options):
            print(f"{row['name']:34} {row['gpu']:9} {row['expect']:14} {' '.join(row.get('tags', []))}")
        return 0
    build = runs.build_key()
    if not options.check:
        run_all([row for row in chosen(rows, options) if not is_fresh(row, build, options)], options, build)
    results = {row["name"]: stored(row) for row in rows}
    wrong_advice = advice.check_all(rows, results)
    right, known = report.write(rows, results, ROOT)
    for line in wrong_advice:
        print(f"advice that the program already follows: {line}")
    print(f"{right} of {known} programs have the right verdict; {len(rows) - known} have not been run")
    return 0 if right == known == len(rows) and not wrong_advice else 1


if __name__ == "__main__":
    sys.exit(main())
