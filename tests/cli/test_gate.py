# SPDX-License-Identifier: Apache-2.0
"""--budget, --baseline and --write-baseline: verdicts, what grew, bad input. Guests are fakes, the ledger is real."""

import copy
import json

import page_rules
import pytest
from command import UNDECIDED
from test_cli import OOM, one_line

MIB = 1 << 20
CONTEXT = 130 * MIB  # rtx3060
HOLDINGS = [["parameters", 8 * MIB, 10, "weight"], ["activations", 4 * MIB, 88, ""], [None, MIB, 90, ""]]


def run(tonnage, schema, *options, holdings=HOLDINGS, reserved=20 * MIB, **wish):
    wish.setdefault("document", {})
    wish["document"] = {"devices": [{"index": 0, "allocated_peak": 16 * MIB, "reserved_peak": reserved,
                                     "requested_peak": 15 * MIB}], **wish["document"]}  # fmt: skip
    done, report = tonnage.fake("--gpu", "rtx3060", *options, stop=1, take=[["forward", reserved]],
                                record={"peak": [holdings, reserved]}, **wish)  # fmt: skip
    schema("run", report)
    return done, report


def write(tonnage, schema, name="peak.json", **wish):
    """The document of a baseline that a run has written."""
    done, report = run(tonnage, schema, "--write-baseline", name, **wish)
    assert done.returncode == 0 and report["baseline_written"] == name
    assert f"  the baseline is in {name}" in done.stderr.splitlines()
    document = json.loads((tonnage.cwd / name).read_text())
    schema("baseline", document)
    return document


# ---- a budget ----


def test_above_the_budget(tonnage, schema):
    done, report = run(tonnage, schema, "--budget", "100MiB")
    over = CONTEXT + 20 * MIB - 100 * MIB
    assert done.returncode == 11 and (report["verdict"], report["exit_status"]) == ("over_budget", 11)
    assert report["budget"] == {"bytes": 100 * MIB, "over_bytes": over, "narrowly": False}
    assert report["findings"][0]["id"] == "over_budget" and report["findings"][0]["bytes"] == over
    lines = done.stderr.splitlines()
    assert "Over the budget on NVIDIA GeForce RTX 3060 (11.75 GiB): 150.0 MiB at the peak, 50.0 MiB too much" in lines
    assert any(line.startswith("  Next  ") for line in lines) and "  Within" not in done.stderr
    again = tonnage("report", "report.json")
    assert again.stdout == done.stderr[done.stderr.index("Over the budget"):]


def test_just_at_the_budget(tonnage, schema):
    done, report = run(tonnage, schema, "--budget", str(CONTEXT + 20 * MIB))
    assert done.returncode == 0 and report["verdict"] == "fits"
    assert report["budget"] == {"bytes": 150 * MIB, "over_bytes": 0, "narrowly": True}
    assert "  Within the budget of 150.0 MiB: 0 B to spare" in done.stderr and "  narrowly: the peak is known" in done.stderr


@pytest.mark.parametrize("wish, status, verdict", [
    ({"exit": 3}, 3, "failed"),
    ({"exit": 1, "document": {"out_of_memory": OOM, "out_of_memory_ended_process": True}}, 10, "out_of_memory"),
])  # fmt: skip
def test_what_does_not_fit_keeps_its_verdict(tonnage, schema, wish, status, verdict):
    write(tonnage, schema)
    before = (tonnage.cwd / "peak.json").read_text()
    done, report = tonnage.fake("--gpu", "rtx3060", "--budget", "1MiB", "--baseline", "peak.json", "--write-baseline",
                                "peak.json", take=[["forward", 20 * MIB]], **{"document": {}, **wish})  # fmt: skip
    schema("run", report)
    assert (done.returncode, report["verdict"]) == (status, verdict)
    assert report["budget"]["over_bytes"] is None and report["baseline"] is None and report["baseline_written"] is None
    assert (tonnage.cwd / "peak.json").read_text() == before
    assert "peak.json was not written" in " ".join(done.stderr.split())


# ---- a baseline ----


def test_a_baseline(tonnage, schema):
    document = write(tonnage, schema)
    assert document["peak"]["device_bytes"] == CONTEXT + 20 * MIB and document["gpu"]["count"] == 1
    assert sum(filter(None, document["by_category"].values())) == CONTEXT + 20 * MIB
    assert document["versions"]["torch"] == "2.11.0+cu130" and document["versions"]["tonnage"]
    row = {"file": "/x/model.py", "function": "forward", "backward": False}
    assert {item["category"]: [line["bytes"] for line in item["lines"]] for item in document["holders"]} == {
        "parameters": [8 * MIB], "activations": [4 * MIB], "temporaries": [MIB]}  # fmt: skip
    assert all(item.items() >= row.items() and "line" not in item for item in document["holders"])


def test_shifted_lines_make_the_same_file(tonnage, schema):
    shifted = [[category, size, line + 7, label] for category, size, line, label in HOLDINGS]
    write(tonnage, schema)
    write(tonnage, schema, "shifted.json", holdings=shifted)
    assert (tonnage.cwd / "peak.json").read_bytes() == (tonnage.cwd / "shifted.json").read_bytes()


def test_as_before(tonnage, schema):
    write(tonnage, schema)
    done, report = run(tonnage, schema, "--baseline", "peak.json", "--tolerance", "0%")
    assert done.returncode == 0 and report["verdict"] == "fits"
    assert report["baseline"] == {"file": "peak.json", "peak_device_bytes": CONTEXT + 20 * MIB, "more_bytes": 0,
                                  "tolerance_percent": 0, "holders": [], "versions": []}  # fmt: skip
    assert "  Against peak.json: 150.0 MiB, as before" in done.stderr.splitlines()


MORE = [["parameters", 8 * MIB, 12, "weight"], ["activations", 4 * MIB, 90, ""], ["activations", 6 * MIB, 91, ""],
        [None, MIB, 93, ""]]  # fmt: skip


def test_what_grew_is_named(tonnage, schema):
    """One line more in a function whose lines have all moved: the function grew, and the new line is to blame."""
    write(tonnage, schema)
    done, report = run(tonnage, schema, "--baseline", "peak.json", holdings=MORE, reserved=26 * MIB)
    assert done.returncode == 11 and (report["verdict"], report["exit_status"]) == ("over_baseline", 11)
    grown = report["baseline"]["holders"][0]
    assert grown == {"category": "activations", "file": "/x/model.py", "line": 91, "function": "forward", "backward": False,
                     "before_bytes": 4 * MIB, "after_bytes": 10 * MIB}  # fmt: skip
    assert [row["id"] for row in report["findings"]][0] == "over_baseline" and report["findings"][0]["at"]["line"] == 91
    lines = done.stderr.splitlines()
    assert "Over the baseline on NVIDIA GeForce RTX 3060 (11.75 GiB): 156.0 MiB at the peak, 6.0 MiB more" in lines
    assert "  Against peak.json: 6.0 MiB more than 150.0 MiB (4.00%, 1% tolerated)" in lines
    assert "    +6.0 MiB activations, /x/model.py:91 forward: 10.0 MiB, was 4.0 MiB" in lines
    again = tonnage("report", "report.json", "--text", "--html", "page.html")
    assert again.stdout == done.stderr[done.stderr.index("Over the baseline"):]
    data = page_rules.data_of((tonnage.cwd / "page.html").read_text())
    schema("page", data)
    assert data["headline"]["verdict"] == "over_baseline"


def test_what_changed_adds_up(tonnage, schema):
    write(tonnage, schema)
    _, report = run(tonnage, schema, "--baseline", "peak.json", holdings=MORE[1:], reserved=40 * MIB)
    rows = report["baseline"]["holders"]
    assert sum(row["after_bytes"] - row["before_bytes"] for row in rows) == report["baseline"]["more_bytes"] == 20 * MIB
    assert {row["category"] for row in rows} == {"activations", "parameters", "cached"}
    gone = next(row for row in rows if row["category"] == "parameters")
    assert (gone["line"], gone["function"], gone["after_bytes"]) == (None, "forward", 0)


@pytest.mark.parametrize("tolerance, status", [("4%", 0), ("3.9999%", 11), ("1000%", 0)])
def test_the_tolerance_decides(tonnage, schema, tolerance, status):
    write(tonnage, schema)
    done, report = run(tonnage, schema, "--baseline", "peak.json", "--tolerance", tolerance, reserved=26 * MIB)
    assert done.returncode == status and report["baseline"]["tolerance_percent"] == float(tolerance[:-1])


def test_less_passes_and_is_told(tonnage, schema):
    write(tonnage, schema, holdings=MORE, reserved=40 * MIB)
    done, report = run(tonnage, schema, "--baseline", "peak.json", "--write-baseline", "peak.json")
    assert done.returncode == 0 and report["verdict"] == "fits" and report["baseline"]["more_bytes"] == -20 * MIB
    lines = done.stderr.splitlines()
    assert "  Against peak.json: 20.0 MiB less than 170.0 MiB (11.76%, 1% tolerated)" in lines
    assert any(line.startswith("    -6.0 MiB activations, /x/model.py") for line in lines)
    assert json.loads((tonnage.cwd / "peak.json").read_text())["peak"]["device_bytes"] == CONTEXT + 20 * MIB


def test_versions_that_differ(tonnage, schema):
    write(tonnage, schema, document={"torch": "2.6.0+cu124", "cuda": "12.4"})
    done, report = run(tonnage, schema, "--baseline", "peak.json")
    assert report["baseline"]["versions"] == [{"name": "torch", "before": "2.6.0+cu124", "now": "2.11.0+cu130"},
                                              {"name": "cuda", "before": "12.4", "now": "13.0"}]  # fmt: skip
    assert "    torch is 2.11.0+cu130, was 2.6.0+cu124" in done.stderr.splitlines()


def test_the_budget_comes_first(tonnage, schema):
    write(tonnage, schema)
    done, report = run(tonnage, schema, "--baseline", "peak.json", "--budget", "100MiB", reserved=40 * MIB)
    assert done.returncode == 11 and report["verdict"] == "over_budget" and report["baseline"]["more_bytes"] == 20 * MIB
    assert [row["id"] for row in report["findings"]][:2] == ["over_budget", "over_baseline"]


def test_without_detail(tonnage, schema):
    options = ["--gpu", "rtx3060", "--no-detail"]
    tonnage.fake(*options, "--write-baseline", "peak.json", take=[["forward", 20 * MIB]])
    schema("baseline", json.loads((tonnage.cwd / "peak.json").read_text()))
    done, report = tonnage.fake(*options, "--baseline", "peak.json", take=[["forward", 40 * MIB]])
    schema("run", report)
    assert done.returncode == 11 and report["baseline"]["holders"] is None
    assert "it is unknown what its memory was for" in done.stderr


# ---- bad input ----

KEPT = {
    "schema": "tonnage.baseline/1", "versions": {"tonnage": "0.1.0", "torch": "2.11.0", "cuda": "13.0", "cudnn": "91900"},
    "gpu": {"name": "NVIDIA GeForce RTX 3060", "count": 1},
    "peak": {"allocated_bytes": 16 * MIB, "reserved_bytes": 20 * MIB, "requested_bytes": None,
             "device_bytes": CONTEXT + 20 * MIB},
    "by_category": {
        **dict.fromkeys(("gradients", "optimizer_state", "activations", "inputs", "temporaries", "workspaces", "other",
                         "rounding", "libraries", "other_processes"), 0),
        "parameters": 8 * MIB, "cached": 12 * MIB, "context": CONTEXT},
    "holders": [{"category": "parameters", "file": "model.py", "function": "build", "backward": False, "bytes": 8 * MIB,
                 "lines": [{"bytes": 8 * MIB, "code": None}]}],
}  # fmt: skip


def test_the_baseline_of_these_tests(tonnage, schema):
    schema("baseline", KEPT)
    (tonnage.cwd / "peak.json").write_text(json.dumps(KEPT))
    assert tonnage("run", "--gpu", "rtx3060", "--baseline", "peak.json", "--", "true").returncode == UNDECIDED


@pytest.mark.parametrize("words, expected", [
    (["--budget", "0"], "must be above 0"),
    (["--budget", "much"], "not a size"),
    (["--tolerance", "1%"], "--tolerance goes with --baseline"),
    (["--baseline", "peak.json", "--tolerance", "1"], "--tolerance is a share such as 1%"),
    (["--baseline", "peak.json", "--tolerance", "-1%"], "--tolerance is a share"),
    (["--baseline", "peak.json", "--tolerance", "1%%"], "--tolerance is a share"),
    (["--baseline", "peak.json", "--tolerance", "1001%"], "--tolerance is a share"),
    (["--baseline", "none.json"], "none.json cannot be read: No such file"),
    (["--baseline", "/"], "is not a baseline"),
    (["--write-baseline", "/nonexistent/peak.json"], "/nonexistent/peak.json cannot be written"),
    (["--baseline", "peak.json", "--gpu", "a100-80"], "peak.json was made on NVIDIA GeForce RTX 3060, this run is on"),
    (["--baseline", "peak.json", "--gpus", "2"], "with --gpus 1, this run has 2"),
])  # fmt: skip
def test_wrong_usage(tonnage, words, expected):
    (tonnage.cwd / "peak.json").write_text(json.dumps(KEPT))
    done = tonnage("run", "--gpu", "rtx3060", *words, "--", "true")
    assert done.returncode == 2 and expected in one_line(done)


def changed(document, *path, value):
    at = document
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value


@pytest.mark.parametrize("path, value, expected", [
    (["schema"], "tonnage.run/1", "schema tonnage.run/1"),
    (["schema"], None, "schema missing"),
    (["versions"], [], '"versions"'),
    (["gpu"], "rtx3060", '"gpu"'),
    (["gpu", "count"], -1, '"gpu"'),
    (["peak", "device_bytes"], None, '"device_bytes"'),
    (["peak", "device_bytes"], 1 << 60, '"device_bytes"'),
    (["peak"], 7, '"device_bytes"'),
    (["by_category"], 7, '"by_category"'),
    (["by_category", "cached"], "much", '"cached"'),
    (["holders"], None, '"holders"'),
    (["holders", 0], None, '"category"'),
    (["holders", 0, "category"], "tensors", '"category"'),
    (["holders", 0, "file"], None, '"file"'),
    (["holders", 0, "bytes"], 1 << 62, '"bytes"'),
    (["holders", 0, "lines"], [], '"lines"'),
    (["holders", 0, "lines", 0], 5, '"lines"'),
])  # fmt: skip
def test_a_baseline_that_is_none(tonnage, path, value, expected):
    document = copy.deepcopy(KEPT)
    changed(document, *path, value=value)
    (tonnage.cwd / "peak.json").write_text(json.dumps(document))
    done = tonnage("run", "--gpu", "rtx3060", "--baseline", "peak.json", "--", "true")
    assert done.returncode == 2 and expected in one_line(done)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "tonnage.baseline/1"', "\x00\xff"])
def test_a_baseline_that_is_broken(tonnage, text):
    (tonnage.cwd / "peak.json").write_text(text, encoding="latin-1")
    done = tonnage("run", "--gpu", "rtx3060", "--baseline", "peak.json", "--", "true")
    assert done.returncode == 2 and "peak.json is" in one_line(done)
