# SPDX-License-Identifier: Apache-2.0
"""tonnage fit --vary on a fake program, without PyTorch: the answer is that of every combination, the table, the page, what is refused."""

import json
import signal

import page_rules
import pytest
from command import FAKES, HERE, wait_until

MIB = 1 << 20
CARD = 1024  # MiB
GRID = ["--vary", "batch=1..64", "--vary", "length=8..64:8"]


@pytest.fixture
def vary(tonnage, schema):
    """vary(wish, *options) -> (finished command, validated document). In the wish, a text, {length} stands for a value."""

    def run(wish, *options, more=(), cards="rtx3060"):
        out = tonnage.cwd / "out.json"
        out.unlink(missing_ok=True)
        program = [*FAKES, str(HERE / "fake_program.py"), wish, *more]
        done = tonnage("fit", "--gpu", cards, "--memory", f"{CARD}MiB", "--json", out, *options, "--", *program, timeout=200)
        document = json.loads(out.read_text()) if out.exists() else None
        if document is not None:
            schema("frontier", document)
        assert tonnage.left_behind() == [] and tonnage.processes() == [], done.stderr
        return done, document

    return run


def context(document, card):
    """What a point takes beside the program's own bytes, from one that was tried."""
    point = next(point for point in card["points"] if point["tried"] and point["verdict"] == "fits")
    batch, length = point["values"]
    return point["peak_device_bytes"] - (10 + length * batch) * MIB


def test_the_answer_is_that_of_every_combination(vary):
    done, document = vary('{"base": 10, "sample": {length}, "batch": 4}', *GRID, "--batch", "64", cards="rtx3060,t4")
    assert done.returncode == 0, done.stderr
    batches, lengths = (axis["values"] for axis in document["axes"])
    assert [axis["name"] for axis in document["axes"]] == ["batch", "length"]
    for card in document["cards"]:
        room = CARD * MIB - context(document, card)
        for row, length in zip(card["rows"], lengths, strict=True):
            fitting = [batch for batch in batches if (10 + length * batch) * MIB <= room]
            assert row["values"] == [length] and row["largest"] == max(fitting) and row["unbounded"] == (max(fitting) == 64)
            assert row["accumulation"] == {"micro_batch": max(fitting), "steps": 64 // max(fitting)}
            if row["peak_device_bytes"] is not None:
                assert row["peak_device_bytes"] + row["margin_bytes"] == CARD * MIB
        for point in card["points"]:
            batch, length = point["values"]
            assert point["verdict"] == ("fits" if (10 + length * batch) * MIB <= room else "out_of_memory")
    assert all(round(axis["memory_grows_with_power"], 1) == 1 for axis in document["axes"])
    assert document["trials"] < len(batches) * len(lengths)  # of 2 x 56 combinations
    assert "Memory grows in proportion to batch, in proportion to length" in done.stderr
    assert "Largest batch that fits on NVIDIA GeForce RTX 3060" in done.stderr and "accumulated over" in done.stderr


def test_the_batch_is_searched_also_where_it_is_named_last(vary):
    _, document = vary('{"base": 10, "sample": {length}, "batch": 4}', "--vary", "length=8,16", "--vary", "batch=1..4")
    assert [axis["name"] for axis in document["axes"]] == ["batch", "length"]


def test_an_option_that_is_there_is_the_place(vary):
    """`--batch-size 8` of the arguments is replaced, and no data loader is touched."""
    done, document = vary('{"base": 10, "sample": 100}', "--vary", "batch-size=1..64", "--batch", "64", more=["--batch-size", "8"])
    (row,) = document["cards"][0]["rows"]
    assert done.returncode == 0 and row["values"] == [] and row["largest"] == 8, done.stderr
    assert document["batch"] is None is row["accumulation"]  # nobody knows that this is the batch


def test_nothing_fits(vary):
    done, document = vary('{"base": 2000, "sample": {length}, "batch": 4}', *GRID)
    assert done.returncode == 10 and {row["largest"] for row in document["cards"][0]["rows"]} == {0}
    assert document["trials"] < 20 and "none" in done.stderr


def test_a_program_that_fails_is_told_from_one_that_does_not_fit(vary):
    """As it does where a length is more than a model's positions."""
    wish = '{"base": 10, "sample": 1, "batch": 4, "fails": {failing}}'
    done, document = vary(wish, "--vary", "batch=1,2,4", "--vary", "failing=3,4")
    assert done.returncode == 3 and document is None and "the program fails" in done.stderr


@pytest.mark.parametrize("options, said", [
    (["--vary", "batch"], "a name and its values"),
    (["--vary", "batch=4,2"], "rising numbers"),
    (["--vary", "layers=1..4"], "write {layers} where its value stands"),
    (["--vary", "length=1..4", "--vary", "length=1..8"], "names length twice"),
    (["--vary", "batch=1..64:1", "--vary", "length=1..64:1", "--vary", "batch2=1"], "write {batch2}"),
    (["--vary", "length=1..64:1", "--vary", "batch=1..64:1", "--vary", "size=1,2"], "more than 4096"),
    (["--vary", "a=1", "--vary", "b=1", "--vary", "c=1", "--vary", "d=1", "--vary", "e=1"], "4 names at most"),
])  # fmt: skip
def test_what_cannot_be_varied_is_refused(vary, options, said):
    done, document = vary('{"base": {length}, "sample": {size}, "batch": 4}', *options)
    assert done.returncode == 2 and document is None and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_no_loader(vary):
    done, _ = vary('{"base": {length}, "refuses": ["batch"]}', *GRID)
    assert done.returncode == 2 and "write {batch} into the program's arguments" in done.stderr


def test_page(vary, tonnage):
    _, document = vary('{"base": 10, "sample": {length}, "batch": 4}', *GRID, "--html", "grid.html")
    data = page_rules.data_of((tonnage.cwd / "grid.html").read_text())
    (card,) = data["frontier"]["cards"]
    assert data["frontier"]["columns"] == document["axes"][0]["values"]
    assert [row["name"] for row in card["rows"]] == [f"length {8 * i}" for i in range(1, 9)]
    shown = [cell["outcome"] for row in card["rows"] for cell in row["cells"]]
    assert shown == [point["verdict"] for point in document["cards"][0]["points"]]


def test_interrupted(tonnage):
    """What is known so far is shown."""
    program = [*FAKES, str(HERE / "fake_program.py"),
               '{"base": 10, "sample": {length}, "batch": 4, "sleep": 1}']  # fmt: skip
    out = tonnage.cwd / "out.json"
    process = tonnage.start("fit", "--gpu", "rtx3060", "--json", out, *GRID, "--jobs", "1", "--", *program)
    wait_until(lambda: len(tonnage.processes()) > 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert json.loads(out.read_text())["interrupted"]
