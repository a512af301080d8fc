#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Causes that threads of people found, rebuilt: late inputs, cells of notebooks, requests to servers. Does `tonnage run` name them?

    bench/user_threads/run.py [--show] [NAME ...]

table.toml says what was found before anything is run. Writes bench/results/user_threads.csv.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402
from runs import commit, document_at, python_of  # noqa: E402
from rebuilt import measure  # noqa: E402

CSV = ROOT / "bench/results/user_threads.csv"
FIELDS = ["name", "kind", "threads", "cause", "right", "missing", "verdict", "why", "seconds", "build"]
STARTS = ("Does not fit", "Memory grows", "Fits", "Undecided")
CARD = "--gpu=rtx4090"


def notebook_of(text, path):
    """A notebook of cells written as text: "# %%" begins each."""
    sources = [part.partition("\n")[2].rstrip("\n") for part in text.split("# %%")[1:]]
    cells = [{"cell_type": "code", "metadata": {}, "source": each, "outputs": [], "execution_count": None} for each in sources]
    kernel = {"name": "python3", "display_name": "python3", "language": "python"}
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}))
    return path


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def requests_of(row, port, path):
    """The row's requests as a file: each a path and the body that is posted."""
    texts = [f"### {place}\nPOST http://127.0.0.1:{port}{place}\nContent-Type: application/json\n\n{body}\n" for place, body in row["requests"]]
    path.write_text("\n".join(texts))
    return path


def words_of(row, folder, usual=False):
    """Options of `tonnage run`, and the program."""
    options = row.get("options", [])
    if row["kind"] == "late":
        return [*options, *([] if usual else ["--inputs=longest"]), "--", PYTHON, HERE / "late.py", row["name"], *(["usual"] if usual else [])]
    if row["kind"] == "cells":
        notebook = notebook_of((HERE / "cells" / f"{row['name']}.py").read_text(), folder / "notebook.ipynb")
        return [*options, "--python", python_of("prog-notebooks"), "--", notebook]
    port = free_port()
    server = HERE / "servers" / f"{row.get('program', row['name'])}.py"
    return [*options, "--request", requests_of(row, port, folder / "asked.http"), "--", python_of("prog-servers"), server, str(port)]


def run(row, usual=False):
    """(the report as a document, as text, seconds)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = [TONNAGE, "run", CARD, f"--memory={row['memory']}", "--json", folder / "report.json", *words_of(row, folder, usual)]
        began = time.monotonic()
        done = subprocess.run(words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300)
        seconds = time.monotonic() - began
        return document_at(folder / "report.json"), shown_of(done.stderr), seconds


def shown_of(text):
    """Of what a run wrote the report."""
    at = [index for index in map(text.rfind, STARTS) if index >= 0]
    return text[min(at):] if at else text


def missing_of(row, document, shown):
    """What the report does not say of the row's answer."""
    flat = " ".join(shown.split())
    missing = [name for name in row["names"] if not re.search(name, flat)]
    verdict = row.get("verdict", "out_of_memory")
    return missing + ([verdict] if document.get("verdict") != verdict else [])


def judge(row):
    document, shown, seconds = run(row)
    missing = missing_of(row, document, shown)
    if row["kind"] == "late":
        without = run(row, usual=True)[0].get("verdict")
        if without != "fits":
            missing.append(f"without the late input: fits, not {without}")
    why = re.search(r"Why (.*?)(?= Next |$)", " ".join(shown.split()))
    if "--show" in sys.argv:
        print(shown)
    return {"name": row["name"], "kind": row["kind"], "threads": " ".join(row["threads"]), "cause": row["cause"], "right": "no" if missing else "yes",
            "missing": "; ".join(missing), "verdict": document.get("verdict"), "why": why[1][:200] if why else "", "seconds": f"{seconds:.0f}",
            "build": commit()}  # fmt: skip


if __name__ == "__main__":
    measure(HERE / "table.toml", CSV, FIELDS, judge)
