#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Causes that threads about several ranks found, rebuilt: does `tonnage run --gpus 2` name them?

    bench/rank_threads/run.py [--show] [NAME ...]

table.toml says what was found before anything is run. Writes bench/results/rank_threads.csv.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402
from runs import commit  # noqa: E402
from rebuilt import measure  # noqa: E402

CSV = ROOT / "bench/results/rank_threads.csv"
FIELDS = ["name", "threads", "cause", "right", "missing", "verdict", "why", "seconds", "build"]
ALONE = {"gathered_outputs", "gathered_maps", "uneven"}  # one process


def run(row):
    launcher = [] if row["name"] in ALONE else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        words = [TONNAGE, "run", "--gpus=2", "--gpu=rtx4090", f"--memory={row['memory']}", "--json", report, "--", PYTHON,
                 *launcher, HERE / "threads.py", row["name"]]  # fmt: skip
        began = time.monotonic()
        done = subprocess.run(words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300)
        seconds = time.monotonic() - began
        document = json.loads(report.read_text()) if report.exists() and report.stat().st_size else {}
    at = [index for index in (done.stderr.rfind("Does not fit"), done.stderr.rfind("Fits on"), done.stderr.rfind("Undecided")) if index >= 0]
    shown = done.stderr[max(at):] if at else done.stderr
    flat = " ".join(shown.split())
    missing = [name for name in row["names"] if not re.search(name, flat)]
    if document.get("verdict") != "out_of_memory":
        missing.append("out of memory")
    if "card" in row and not any(card["out_of_memory"] and card["index"] == row["card"] for card in document.get("cards", [])):
        missing.append(f"card {row['card']} is full")
    why = re.search(r"Why (.*?)(?= Next )", flat)
    if "--show" in sys.argv:
        print(shown)
    return {"name": row["name"], "threads": " ".join(row["threads"]), "cause": row["cause"], "right": "yes" if not missing else "no",
            "missing": "; ".join(missing), "verdict": document.get("verdict"), "why": why[1][:200] if why else "", "seconds": f"{seconds:.0f}", "build": commit()}  # fmt: skip


if __name__ == "__main__":
    measure(HERE / "table.toml", CSV, FIELDS, run)
