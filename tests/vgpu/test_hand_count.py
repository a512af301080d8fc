# SPDX-License-Identifier: Apache-2.0
"""Categories at the peaks of GPT-2 and ResNet-50 are what a count from shapes alone says, to the byte."""

import importlib.util

import pytest
from conftest import MAIN, ROOT

FORKED = True  # ../fork_servers.py
spec = importlib.util.spec_from_file_location("categories_run", ROOT / "bench/categories/run.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)


@pytest.mark.parametrize("model", list(bench.BY_HAND))
def test_categories_are_those_of_a_count_by_hand(tonnage, model):
    def run(name):
        done = tonnage(MAIN, [str(bench.PROGRAM), name, "ours"], *bench.OPTIONS, env=bench.SMALL_WORKSPACES)
        return done.status, done.report, done.stdout, done.stderr

    rows = list(bench.rows_of(model, bench.BY_HAND[model](), run))
    assert sum(row["by_hand"] != "" for row in rows) == 5 and bench.differing(rows) == [], rows
