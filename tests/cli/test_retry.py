# SPDX-License-Identifier: Apache-2.0
"""When a program that failed after reading made-up values is run again, and when not (doc/design/0006-values.md), on a fake
program, without PyTorch."""

import json
import os
import sys

import pytest
from command import HERE

TWO = {"5": 1}  # a truth whose second value lets the program pass


@pytest.fixture
def starts(tonnage):
    """starts(wants, *options, ...) -> (finished command, report, what each start was given and read)"""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def run(wants, *options, document=None, **streams):
        wish = {"pipe": writer, "wants": wants, "document": document or {}}
        words = [sys.executable, "-I", "-X", "tonnage=off", str(HERE / "fake_reader.py"), json.dumps(wish)]
        report = tonnage.cwd / "report.json"
        done = tonnage("run", "--json", report, "--gpu", "rtx3060", *options, "--", *words, pass_fds=[writer], **streams)
        try:
            rows = [json.loads(line) for line in os.read(reader, 1 << 16).decode().splitlines()]
        except BlockingIOError:
            rows = []
        return done, json.loads(report.read_text()), rows

    yield run
    os.close(reader)
    os.close(writer)


def test_a_program_that_failed_gets_the_other_value(starts):
    done, report, rows = starts(TWO, stdin=-3)
    assert done.returncode == 0 and report["verdict"] == "fits", done.stderr
    assert [row["given"] for row in rows] == [{}, {"5": 1}]
    assert report["retry"] == {"runs": 1, "file": "/x/train.py", "line": 5, "what": "truth", "value": "true"}
    assert done.stdout == "shown\n", "a second run says nothing"


def test_a_run_that_fails_elsewhere_is_the_next_start(starts):
    done, report, rows = starts({"5": 1, "6": 2}, stdin=-3)
    assert done.returncode == 0 and report["retry"]["runs"] == 3, done.stderr
    assert rows[-1]["given"] == {"5": 1, "6": 2}


def test_three_runs_more_at_most(starts):
    done, report, rows = starts({"5": 7, "6": 7, "8": 7}, stdin=-3)
    assert done.returncode == 1 and report["verdict"] == "failed" and report["retry"] is None, done.stderr
    assert len(rows) == 4 and done.stdout == "shown\n"


def test_a_file_on_stdin_is_read_from_where_it_stood(starts, tmp_path):
    typed = tmp_path / "typed"
    typed.write_text("header\nwords")
    with open(typed, "rb", buffering=0) as given:
        given.read(7)
        done, report, rows = starts(TWO, stdin=given)
    assert [row["read"] for row in rows] == ["words", "words"], done.stderr


def test_what_came_by_a_pipe_is_gone(starts):
    done, report, rows = starts(TWO, input="words")
    assert [row["read"] for row in rows] == ["words"] and report["verdict"] == "failed" and report["retry"] is None


@pytest.mark.parametrize("options, document", [
    (["--writes", "allow"], {}),  # it wrote real files
    (["--network", "allow"], {"connected": True}),  # it may have told somebody something
    ([], {"connected": True}),
    ([], {"assumptions": []}),  # no made-up value was read
    ([], {"assumptions": [{"file": "/x/train.py", "line": 5, "what": "zeros", "value": "0", "bound": 0, "reads": 1, "choice": 0,
                           "endless": False}]}),  # there is no other one
])  # fmt: skip
def test_nothing_is_run_again(starts, options, document):
    done, report, rows = starts(TWO, *options, document=document, stdin=-3)
    assert len(rows) == 1 and report["verdict"] == "failed" and report["retry"] is None, done.stderr


def test_a_program_that_passed_is_not_tried_with_other_values(starts):
    done, report, rows = starts({"5": 0}, stdin=-3)
    assert done.returncode == 0 and len(rows) == 1 and report["retry"] is None
