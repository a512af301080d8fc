# SPDX-License-Identifier: Apache-2.0
"""Every program of examples/ ends on the virtual GPU as examples/examples.toml says that a real card lets it end; its own
mistake is the first finding, at its line, and what is no mistake of its own is not found.

Places are found by the markers in the sources ("# <- out of memory"), so lines may move.
"""

import re
import tomllib

import pytest
from conftest import ROOT

FORKED = True  # ../fork_servers.py

EXAMPLES = ROOT / "examples"
TABLE = tomllib.loads((EXAMPLES / "examples.toml").read_text())["example"]
PARTS = {"model.py"}  # no programs of their own
MARKERS = {"out_of_memory": "out of memory", "grows": "grows", "failed": "the mistake"}
ADVICE = {
    "activation checkpointing",
    "allocated, reserved, requested",
    "buffers and churn",
    "data loading",
    "del, gc.collect, empty_cache",
    "fragmentation",
    "gradient accumulation",
    "memory grows",
    "mistake",
    "mixed precision",
    "no_grad in evaluation",
    "offload",
    "optimizer choice",
    "other processes",
    "profilers and snapshots",
    "pruning and quantization",
    "read the message",
    "reduce the batch",
    "several cards",
    "zero_grad placement",
}


def name_of(row):
    words = [*row.get("arguments", []), *row.get("options", []), *row.get("env", {})]
    return " ".join([row["program"][: -len(".py")], *words])


def cases():
    for row in TABLE:
        yield pytest.param(row, id=name_of(row), marks=[pytest.mark.long] if row.get("long") else [])


def lines_marked(file, marker):
    """The numbers of the lines that end with the marker."""
    lines = (EXAMPLES / file).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if re.search(rf"# <- {re.escape(marker)}$", line)]


def places(row):
    """(file name, line) of every line that is right."""
    file = row.get("file", row["program"])
    marker = row.get("marker", MARKERS.get(row["verdict"]))
    return [(file, line) for line in lines_marked(file, marker)] if marker else []


def place_of(at):
    return (at["file"].rpartition("/")[2], at["line"]) if at else None


def check_out_of_memory(run, row):
    oom = run.report["out_of_memory"]
    assert place_of(oom["at"]) in places(row), run.explain()
    assert oom["at"]["backward"] == row.get("backward", False), run.explain()
    assert row.get("phase", oom["phase"]) == oom["phase"], run.explain()
    assert row.get("cause", oom["cause"]) == oom["cause"], run.explain()


def check_grows(run, row):
    growth = run.report["growth"]
    assert place_of(growth["at"]) in places(row), run.explain()
    assert growth["bytes_per_unit"] > 0 and growth["full_at"] > run.report["steps"]["seen"], run.explain()


def check_failed(run, row):
    assert any(f'{file}", line {line}' in run.stderr for file, line in places(row)), run.explain()


def check_fits(run, row):
    handled = [place_of(site) for site in run.report["handled_out_of_memory"]]
    assert handled == (places(row) if row.get("handled") else []), run.explain()
    assert run.report["out_of_memory"] is None, run.explain()


def check_findings(run, row):
    """The program's own mistake is the first finding, at its line; the mistakes of other programs are not found here."""
    findings = run.report["findings"]
    if "finding" in row:
        assert findings and findings[0]["id"] == row["finding"], run.explain()
        right = [(row["program"], line) for line in lines_marked(row["program"], "the mistake")] or places(row)
        assert place_of(findings[0]["at"]) in right, run.explain()
    own = {row.get("finding"), *row.get("also", [])}
    assert {finding["id"] for finding in findings} & MISTAKES <= own, run.explain()


MISTAKES = {row["finding"] for row in TABLE if "finding" in row}
CHECKS = {"out_of_memory": check_out_of_memory, "grows": check_grows, "failed": check_failed, "fits": check_fits}


@pytest.mark.parametrize("row", list(cases()))
def test_an_example_ends_as_on_a_real_card(tonnage, row):
    program = [*row.get("launcher", []), str(EXAMPLES / row["program"]), *row.get("arguments", [])]
    run = tonnage("torch-2.11.0", program, "--gpu=rtx3060", *row.get("options", []), env=row.get("env"))
    assert (run.verdict, run.status) == (row["verdict"], row["status"]), run.explain()
    assert run.report["coverage"]["refused_calls"] == [], run.explain()
    assert row.get("stdout", "") in run.stdout and row.get("stderr", "") in run.stderr, run.explain()
    CHECKS[row["verdict"]](run, row)
    check_findings(run, row)


def test_the_table_is_whole():
    programs = {path.name for path in EXAMPLES.glob("*.py")} - PARTS
    assert {row["program"] for row in TABLE} == programs
    assert {row["shows"] for row in TABLE} == ADVICE
    assert len({name_of(row) for row in TABLE}) == len(TABLE)
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in sorted(programs) if name not in readme] == []


@pytest.mark.parametrize("row", list(cases()))
def test_a_place_is_marked(row):
    assert bool(places(row)) == (row["verdict"] != "fits" or "marker" in row)


def test_ten_examples_do_not_fit_a_card_with_12_gb():
    assert len({row["program"] for row in TABLE if row["verdict"] == "out_of_memory"}) >= 10
