# SPDX-License-Identifier: Apache-2.0
"""The table of what `make test` leaves to `make long` names tests that are there, and what shows their matter instead."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import long_tests  # noqa: E402


def test_rows_name_tests_and_say_what_shows_them():
    rows = long_tests.rows()
    assert len(rows) == len({row[0] for row in rows}) and all(len(row) == 2 and row[1] for row in rows)
    for test, _ in rows:
        file, _, function = test.partition("::")
        text = (long_tests.HERE / file).read_text()
        assert re.search(rf"(?m)^def {re.escape(function.partition('[')[0])}\(", text), test


def test_what_shows_a_test_is_not_left_itself():
    """A row may name a test of its file: that one is run by `make test`."""
    left = {test for test, _ in long_tests.rows()}
    for test, instead in long_tests.rows():
        file, _, function = test.partition("::")
        for case in re.findall(r"(?:^|[ ,])(\[[^\]]+\])", instead):
            assert f"{file}::{function.partition('[')[0]}{case}" not in left, (test, case)
        for where, other in re.findall(r"(?:([\w/.]+)::)?(test_\w+(?:\[[^\]]+\])?)", instead):
            assert f"{where or file}::{other}" not in left, (test, other)
