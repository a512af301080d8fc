# SPDX-License-Identifier: Apache-2.0
"""The gate on real torch: a library whose block was made to keep one tensor more (gate/blocks.py) fails the baseline and
the marker, with the line that is to blame; and figures do not move by a byte."""

import os
import subprocess
import tempfile
import xml.etree.ElementTree

import pytest
from conftest import HERE, MIB, ROOT, TEMPORARY, TONNAGE, python_of

FORKED = True  # ../fork_servers.py
WHEEL = "torch-2.11.0"
GATE = HERE / "gate"
MORE = {"KEEP_MORE": "1"}
LAYERS, KEPT = 4, 16 * MIB  # 4096 x 1024 numbers of 4 bytes
GUILTY = 1 + next(number for number, line in enumerate((GATE / "blocks.py").read_text().splitlines()) if "# one more" in line)


# ---- the baseline ----


@pytest.fixture
def train(tonnage, tmp_path):
    """train(*options): the run of gate/train.py."""
    return lambda *options, env=None: tonnage(WHEEL, "gate/train.py", "--gpu=rtx3060", "--steps=all", *options, cwd=tmp_path,
                                              env=env)  # fmt: skip


def test_one_tensor_more_fails_the_baseline(train, tmp_path):
    first = train("--write-baseline=peak.json")
    assert first.status == 0, first.explain()
    run = train("--baseline=peak.json", "--tolerance=1%", env=MORE)
    assert run.status == 11 and run.verdict == "over_baseline", run.explain()
    grown = run.report["baseline"]["holders"][0]
    assert grown["file"] == str(GATE / "blocks.py") and grown["line"] == GUILTY, run.explain()
    assert grown["function"].endswith("forward") and grown["after_bytes"] - grown["before_bytes"] == LAYERS * KEPT
    assert f"blocks.py:{GUILTY}" in run.stderr and run.report["baseline"]["versions"] == [], run.explain()


def check_the_same(train, tmp_path, times):
    for number in range(times):
        assert train(f"--write-baseline={number}.json", "--quiet").status == 0
    assert len({(tmp_path / f"{number}.json").read_bytes() for number in range(times)}) == 1


@pytest.mark.fresh
def test_figures_do_not_move_by_a_byte(train, tmp_path):
    check_the_same(train, tmp_path, 2)


@pytest.mark.fresh
@pytest.mark.long
def test_figures_do_not_move_by_a_byte_in_twenty_runs(train, tmp_path):
    check_the_same(train, tmp_path, 20)


# ---- the marker ----


def run_pytest(tmp_path, *arguments, env=None):
    """(the finished pytest, {test: (outcome, message, peak)}) of the library's tests."""
    junit = tmp_path / "junit.xml"
    command = [python_of(WHEEL), "-m", "pytest", "-p", "tonnage.pytest_plugin", "-p", "no:cacheprovider", "-v",
               f"--junitxml={junit}", f"--rootdir={GATE}", str(GATE / "library_tests.py"), *arguments]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{GATE}", "TMPDIR": TEMPORARY.name,
                   "PATH": f"{TONNAGE.parent}:{os.environ['PATH']}", **(env or {})}  # fmt: skip
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    rows = {}
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase") if junit.exists() else ():
        failure = case.find("failure")
        peak = case.find("properties/property[@name='tonnage_peak_device_bytes']")
        rows[case.get("name")] = ("passed" if failure is None else "failed", failure.text if failure is not None else "",
                                  int(peak.get("value")) if peak is not None else None)  # fmt: skip
    return done, rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """run_pytest of all tests, and what it has left in its folder of temporary files."""
    with tempfile.TemporaryDirectory(dir=TEMPORARY.name) as folder:
        done, rows = run_pytest(tmp_path_factory.mktemp("gate"), "--tonnage-gpu=a100-80", env={"TMPDIR": folder})
        return done, rows, os.listdir(folder)


def test_marked_tests_have_peaks_of_their_own(whole):
    done, rows, left = whole
    outcomes = {name: row[0] for name, row in rows.items()}
    assert outcomes == {"test_plain": "passed", "test_training": "passed", "test_more_layers": "passed",
                        "test_training_again": "passed", "test_that_fails": "failed",
                        "test_that_ends_python": "failed", "test_on_another_card": "passed", "test_plain_again": "passed"}, done.stdout  # fmt: skip
    assert "no such shape" in rows["test_that_fails"][1] and done.returncode == 1
    training, more, again = (rows[name][2] for name in ("test_training", "test_more_layers", "test_training_again"))
    assert training == again < more and rows["test_that_fails"][2] < training, done.stdout
    assert rows["test_plain"][2] is None and "ended before this test did" in rows["test_that_ends_python"][1]
    assert left == []


def test_one_tensor_more_fails_the_marker(whole, tmp_path):
    rows = whole[1]
    assert rows["test_training"][0] == "passed"
    budget = str(rows["test_training"][2] + MIB)
    done, rows = run_pytest(tmp_path, "-k", "test_training", env={**MORE, "BUDGET": budget})
    outcome, message, _ = rows["test_training"]
    assert outcome == "failed" and "over the budget of" in message, done.stdout
    assert f"blocks.py:{GUILTY} " in message and f"{LAYERS * KEPT / MIB:.1f} MiB" in message, done.stdout
    assert rows["test_training_again"][0] == "passed" and done.returncode == 1


@pytest.mark.parametrize("arguments, env, status, words", [
    (["--tonnage-gpu=real"], {}, 4, "only a virtual GPU"),
    ([], {"BUDGET": "much"}, 4, "budget='much' is not a size"),
    (["--tonnage-gpu=voodoo", "-k", "another_card"], {}, 1, "tonnage gpus lists"),
])  # fmt: skip
def test_wrong_usage(tmp_path, arguments, env, status, words):
    done, _ = run_pytest(tmp_path, *arguments, env=env)
    assert done.returncode == status and words in done.stdout + done.stderr


def test_inside_a_run_nothing_is_started(tonnage, tmp_path):
    words = ["-m", "pytest", "-p", "tonnage.pytest_plugin", "-k", "another_card", f"--rootdir={GATE}", str(GATE / "library_tests.py")]
    run = tonnage(WHEEL, words, "--gpu=a100-80", "--steps=all", env={"PYTHONPATH": f"{ROOT / 'python'}:{GATE}"})
    # Nothing of it uses a GPU: the tests pass, and the run has no verdict.
    assert run.status == 12 and "1 passed" in run.stdout and "inside a run already" in run.stdout, run.explain()
