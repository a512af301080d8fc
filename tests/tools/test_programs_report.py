# SPDX-License-Identifier: Apache-2.0
"""bench/programs/report.py: running a few programs loses no other's result, and the page counts the whole table."""

import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/programs"))

import report  # noqa: E402


def row(name):
    return {"name": name, "gpu": "rtx3060", "expect": "fits", "measure": "allocated", "reason": f"why of {name}"}


def result(commit, verdict="fits"):
    return {"report": {"verdict": verdict, "peak": {"allocated_bytes": 1 << 30}}, "status": 0, "seconds": 1.0,
            "versions": {"torch": "2.11.0"}, "commit": commit}  # fmt: skip


def written(root):
    with open(root / "bench/results/programs.csv", newline="") as file:
        return {values["program"]: values for values in csv.DictReader(file)}


def test_rows_without_a_new_result_stay(tmp_path):
    (tmp_path / "bench/results").mkdir(parents=True)
    (tmp_path / "doc").mkdir()
    rows = [row("first"), row("second"), row("third")]
    report.write(rows, {"first": result("aaa"), "second": result("aaa")}, tmp_path)
    right, known = report.write(rows, {"second": result("bbb", "failed")}, tmp_path)
    assert (right, known) == (1, 2)
    assert {name: (values["commit"], values["right"]) for name, values in written(tmp_path).items()} == {
        "first": ("aaa", "yes"), "second": ("bbb", "no")}  # fmt: skip
    page = (tmp_path / "doc/what-runs.md").read_text()
    assert "Of 3 programs 1 end with the right verdict and 1 with a wrong one; 1 have no result: third." in page
    assert "The results are of 2 builds: aaa, bbb." in page
    before = written(tmp_path)
    report.write(rows, {}, tmp_path)  # --check where no result is stored
    assert written(tmp_path) == before
    report.write(rows[1:], {}, tmp_path)  # a program that left the table
    assert list(written(tmp_path)) == ["second"]
