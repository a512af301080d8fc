# SPDX-License-Identifier: Apache-2.0
"""The model writer keeps its own rules, tells what was alive exactly, and the rules notice what breaks them."""

import copy
import json
import pathlib

import page_data
import page_rules
import pytest
import scenes

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "doc/format/page.schema.json").read_text())


def validate(data):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(data)))


@pytest.mark.parametrize("name", ["out_of_memory", "hostile", "fragmented", "sharded", "long"])
def test_scenes_keep_the_format(scene, name):
    _, data = scene(name)
    validate(data)
    assert list(page_rules.complaints(data)) == []


def test_comparison_keeps_the_format(scene):
    data = scenes.with_comparison(copy.deepcopy(scene("out_of_memory")[1]))
    validate(data)
    assert list(page_rules.complaints(data)) == []


@pytest.mark.parametrize("seed", range(6))
def test_what_is_listed_is_what_lived(monkeypatch, seed):
    """Also where rows had to be joined, for every column: by category and site, against the trace itself."""
    monkeypatch.setattr(page_data, "MOST_COLUMNS", 40)
    monkeypatch.setattr(page_data, "MOST_INTERVALS", 60)
    monkeypatch.setattr(page_data, "MOST_CHANGES", 400)
    trace, data = scenes.busiest(3000, alive=200, sites=40, seed=seed)
    validate(data)
    assert list(page_rules.complaints(data)) == []
    assert len(data["intervals"]["from"]) == 60 and -1 in data["small"]["site"]
    _, moments = page_rules.moments_of(data["timeline"])
    for moment, found in zip(moments, page_rules.alive(data)):
        lived = dict.fromkeys(found, 0)
        for begin, end, size, category, *_ in trace.intervals:
            if begin <= moment < end:
                lived[page_data.CATEGORIES[category][0]] += size
        assert found == lived


def test_each_column_is_its_fullest_moment(scene):
    trace, data = scene("long")
    first, moments = page_rules.moments_of(data["timeline"])
    for start, moment, end in zip(first, moments, [*first[1:], trace.state + 1]):
        states = range(start, end)
        assert trace.device[moment] == max(trace.device[state] for state in states)
    peak = data["moments"][0]["column"]
    assert trace.device[moments[peak]] == max(trace.device)


@pytest.mark.parametrize("more", [1, -1, 1 << 40])
def test_rules_notice_other_communicators(scene, more):
    """What the communicators hold and what is listed are all of the category."""
    data = copy.deepcopy(scene("sharded")[1])
    data["card"]["communication_bytes"] += more
    assert list(page_rules.complaints(data)) != []


def spoil(path, change):
    """(what is changed, how) of a test below."""
    return pytest.param(path, change, id=".".join(map(str, path)))


@pytest.mark.parametrize("path, change", [
    spoil(["strings", 0], lambda value: "x"),
    spoil(["frames", "file"], lambda rows: [*rows[:-1], 10 ** 6]),
    spoil(["frames", "line"], lambda rows: rows[:-1]),
    spoil(["stacks", "parent"], lambda rows: [0, 5, *rows[2:]]),
    spoil(["sites", "at"], lambda rows: [10 ** 6, *rows[1:]]),
    spoil(["sites", "stack"], lambda rows: [-1, *rows[1:]]),
    spoil(["timeline", "first"], lambda rows: [1, *rows[1:]]),
    spoil(["timeline", "at"], lambda rows: [10 ** 6, *rows[1:]]),
    spoil(["timeline", "bytes", "parameters"], lambda rows: [*rows[:-1], rows[-1] + 1]),
    spoil(["timeline", "bytes", "activations"], lambda rows: rows[:-1]),
    spoil(["timeline", "low"], lambda rows: [10 ** 15, *rows[1:]]),
    spoil(["moments", 0, "column"], lambda value: 10 ** 6),
    spoil(["intervals", "bytes"], lambda rows: [rows[0] + 1, *rows[1:]]),
    spoil(["intervals", "life"], lambda rows: [1, *rows[1:]]),
    spoil(["intervals", "site"], lambda rows: [10 ** 6, *rows[1:]]),
    spoil(["small", "changes"], lambda rows: [5]),
    spoil(["segments", 0, "blocks", "size"], lambda rows: [rows[0] + 512, *rows[1:]]),
    spoil(["segments", 0, "segments", "address"], lambda rows: [rows[0], 0, *rows[2:]]),
    spoil(["segments", 0, "segments", "blocks"], lambda rows: [*rows[:-1], rows[-1] + 1]),
    spoil(["findings", 0, "column"], lambda value: 10 ** 6),
])
def test_rules_notice(scene, path, change):
    data = copy.deepcopy(scene("out_of_memory")[1])
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = change(at[path[-1]])
    assert list(page_rules.complaints(data)) != []
