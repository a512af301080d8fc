# SPDX-License-Identifier: Apache-2.0
"""Categories at the peaks of GPT-2 and ResNet-50 are what a count from shapes alone says, to the byte."""

import subprocess
import sys

from conftest import ROOT, python_of


def test_categories_are_those_of_a_count_by_hand(tmp_path):
    python_of("torch-2.11.0")
    table = tmp_path / "categories.csv"
    done = subprocess.run([sys.executable, ROOT / "bench/categories/run.py", "--output", table], capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(table.read_text().splitlines()) > 10
