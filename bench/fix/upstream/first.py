#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds until `tonnage fix` says what fits first, on the scripts of table.toml; the search is interrupted then.

    bench/fix/upstream/first.py --sources DIRECTORY [--tonnage PATH] [--only NAME ...]

A search says so on a terminal as soon as it is proven, so one is made for it. The machine should do nothing else. `first`: what was said to
fit, empty where nothing was within 150 seconds. `build`: the commit that was measured; bench/results/fix_first.csv keeps the rows of others.
"""

import argparse
import csv
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

RESULTS = ROOT / "bench/results/fix_first.csv"
FIELDS = ["build", "script", "seconds", "first"]
PATIENCE = 150
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def first_of(row, sources, tonnage):
    """(seconds, the change that was said to fit, or "")."""
    folder = sources / row["repository"].split("/")[1] / row.get("folder", "")
    python = ENVIRONMENTS / row.get("environment", "torch-2.11.0") / "bin/python"
    card = ["--gpu", row["gpu"], *(["--memory", row["memory"]] if "memory" in row else [])]
    words = [str(tonnage), "fix", *card, "--", str(python), *row["start"], *row["arguments"]]
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(words[0], words, {**os.environ, **row.get("variables", {})})
    said, found = "", None
    while found is None and time.monotonic() - began < PATIENCE:
        if select.select([terminal], [], [], 1)[0]:
            said = (said + read(terminal))[-4000:]
            found = re.search(r"fits with ([^\r\n]+)[\r\n]", said)
            if "trials on a virtual GPU" in said:
                break
    seconds = time.monotonic() - began
    os.kill(pid, signal.SIGINT)
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if select.select([terminal], [], [], 0.2)[0]:
            read(terminal)
    os.close(terminal)
    return seconds, found.group(1) if found else ""


def read(terminal):
    try:
        return _ESCAPE.sub("\n", os.read(terminal, 65536).decode(errors="replace"))
    except OSError:  # nobody has it open any more
        time.sleep(0.1)
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--tonnage", type=pathlib.Path, default=TONNAGE)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    here = options.tonnage.resolve().parent
    build = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=here, capture_output=True, text=True, check=True).stdout.strip()
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    for row in tomllib.loads((HERE / "table.toml").read_text())["script"]:
        if options.only and row["name"] not in options.only:
            continue
        seconds, first = first_of(row, options.sources, options.tonnage)
        print("%-24s %6.1f  %s" % (row["name"], seconds, first), flush=True)
        rows = [each for each in rows if (each["build"], each["script"]) != (build, row["name"])]
        rows.append({"build": build, "script": row["name"], "seconds": "%.1f" % seconds, "first": first})
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
