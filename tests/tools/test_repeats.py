# SPDX-License-Identifier: Apache-2.0
"""bench/repeats: a proof can fail in each of its parts, what it names is there, and cases that were not run keep their row."""

import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
bench = runpy.run_path(str(ROOT / "bench/repeats/run.py"), run_name="bench_repeats")  # another run.py may be imported already
REPORT = {"verdict": "fits", "steps": {"seen": 4}, "ranks": [{"peak": 1}, {"peak": 2}]}


@pytest.mark.parametrize(
    "proof, fault",
    [
        ({"status": [0], "report": {"verdict": "fits", "steps.seen": 4, "ranks": 2, "ranks.1.peak": [1, 2]}, "says": ["one two"]}, None),
        ({"status": [10, 12]}, "status 0"),
        ({"report": {"steps.seen": 5}}, "steps.seen is 4, not 5"),
        ({"report": {"steps.seen": [5, 9]}}, "steps.seen is 4, not [5, 9]"),
        ({"report": {"verdict": ["failed", "undecided"]}}, "verdict is fits, not ['failed', 'undecided']"),
        ({"report": {"hang.rank": 0}}, "hang.rank is None, not 0"),
        ({"says": ["three"]}, "does not say 'three'"),
        ({"never": ["e t."]}, "says 'e tw'"),
    ],
)
def test_a_proof_can_fail(proof, fault):
    found = list(bench["faults_of"](proof, 0, REPORT, "one\n  two"))
    assert found == ([fault] if fault else [])


def test_a_case_whose_time_was_up_is_wrong():
    assert list(bench["faults_of"]({}, None, {}, "")) == ["its time was up"]


def test_what_the_table_names_is_there():
    for row in bench["cases"]():
        assert row["before"] and row["right"] and row["title"] and {"run", "tests", "results"} & set(row), row["name"]
        for test in row.get("tests", []):
            path, _, name = test.partition("::")
            text = (ROOT / path).read_text()
            assert not name or f"def {name.partition('[')[0]}(" in text, test
        for proof in row.get("run", []):
            assert {"status", "report", "says"} & set(proof), row["name"]
            for word in proof["command"]:
                assert not word.endswith((".py", ".go")) or (ROOT / "bench/repeats" / word).is_file(), word
            assert (ROOT / f"tools/requirements/{proof.get('env', 'torch-2.11.0')}.txt").exists()
        for name in row.get("results", []):
            assert (ROOT / f"bench/results/{name.partition(':')[0]}.csv").exists(), name


def test_all_that_was_wrong_has_a_case():
    """18 first causes, and 21 of 24 defects."""
    cited = " ".join(row["cites"] for row in bench["cases"]())
    causes = set(map(int, re.findall(r"cause (\d+)", cited)))
    defects = {int(number) for group in re.findall(r"defect (\d+(?:, \d+)*)", cited) for number in group.split(", ")}
    assert causes == set(range(1, 19)) and defects == set(range(1, 25)) - {6, 15, 18}


def test_another_benchs_row_is_held_to_its_limit(monkeypatch, tmp_path):
    (tmp_path / "bench/results").mkdir(parents=True)
    (tmp_path / "bench/results/times.csv").write_text("program,seconds,right,why,verdict,peak_bytes\na,20.5,no,too much,fits,1073741824\n")
    monkeypatch.setitem(bench["look_up"].__globals__, "ROOT", tmp_path)
    assert bench["look_up"]({}, "times:a:seconds<=25") == ([], "a: seconds 20.5")
    assert bench["look_up"]({}, "times:a:seconds<=20")[0] == ["a: seconds 20.5, not 20"]
    assert bench["look_up"]({}, "times:a") == (["a: too much"], "a: fits, 1.00 GiB")
    assert bench["look_up"]({}, "times:b")[0] == ["b has no result"]


def test_cases_that_were_not_run_keep_their_row(monkeypatch, tmp_path):
    scope = bench["write"].__globals__
    for name in ("CSV", "PAGE", "STATE"):
        monkeypatch.setitem(scope, name, tmp_path / name)
    rows = [{"name": name, "cites": "cause 1", "title": name, "before": "b", "right": "r"} for name in ("first", "second", "third")]
    done = {"faults": [], "now": ["fits"], "seconds": 1.0, "commit": "aaa"}
    monkeypatch.setitem(scope, "stored", lambda row: done if row["name"] != "third" else None)
    bench["write"](rows)
    monkeypatch.setitem(scope, "stored", lambda row: {**done, "faults": ["broken"], "commit": "bbb"} if row["name"] == "second" else None)
    records = bench["write"](rows)
    assert {name: (values["right"], values["commit"]) for name, values in records.items()} == {
        "first": ("yes", "aaa"), "second": ("no", "bbb")}  # fmt: skip
    page = (tmp_path / "PAGE").read_text()
    assert "Of 3 cases: right 1, wrong 1," in page and "not run 1 (third)." in page and "| no: broken |" in page
