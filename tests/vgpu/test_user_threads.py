# SPDX-License-Identifier: Apache-2.0
"""Causes that threads found, rebuilt as late inputs, servers and cells (bench/user_threads): the report names them."""

import runpy
import tomllib

import fork_servers
import pytest
from conftest import MAIN, ROOT, run_tonnage

bench = runpy.run_path(str(ROOT / "bench/user_threads/run.py"), run_name="bench_user_threads")  # another run.py may be imported already
FORKED = True  # ../fork_servers.py
PROGRAM = str(ROOT / "bench/user_threads/late.py")
ROWS = {row["name"]: row for row in tomllib.loads((ROOT / "bench/user_threads/table.toml").read_text())["thread"]}
# What leads, of a rule of its own or of an input that is far longer than most.
LEADS = {"scanned": "larger_input", "graphs": "larger_input", "dpo": "logits"}
ALIKE = {"scanned"}
IMPORTS = {"dpo": fork_servers.LIBRARIES}  # in the middle of the program
OTHERS = ["chat", pytest.param("pixels", marks=pytest.mark.long), pytest.param("gallery", marks=pytest.mark.long), "offload_late"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in ALIKE else name for name in LEADS])
def test_late_inputs(tonnage, name):
    row = ROWS[name]
    run = tonnage(MAIN, [PROGRAM, name], "--gpu=rtx4090", f"--memory={row['memory']}", "--inputs=longest", imports=IMPORTS.get(name, ()))
    assert not bench["missing_of"](row, run.report, run.stderr), run.explain()
    first = [finding for finding in run.report["findings"] if finding["severity"] == "error"][0]
    assert first["id"] == LEADS[name], run.explain()
    words = " ".join(run.stderr.split())
    assert "--inputs longest -- " in words, run.stderr  # fix is to meet the same order
    if first["id"] == "larger_input":
        assert "Why a long input: the batch holds sample" in words and "a bound on what one batch may hold" in words, run.stderr


@pytest.mark.parametrize("name", OTHERS)
def test_servers_and_cells(tmp_path, name):
    row = ROWS[name]
    words = list(map(str, bench["words_of"](row, tmp_path)))
    options = [bench["CARD"], f"--memory={row['memory']}", *words[:words.index("--")]]
    run = run_tonnage(options, words[words.index("--") + 1:], tmp_path, forked=row["kind"] == "cells")
    assert not bench["missing_of"](row, run.report, bench["shown_of"](run.stderr)), run.explain()
