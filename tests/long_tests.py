# SPDX-License-Identifier: Apache-2.0
"""What `make test` leaves to `make long`, for the conftest.py of each folder, which imports the hooks.

Two kinds: tests marked `long`, which take long or need what `make test` does not install; and the rows of long_tests.tsv, tests whose
matter another one of `make test` shows for less, each with the name of that one (doc/design/0034-tests.md).
"""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "long_tests.tsv"


def rows():
    """(test, what shows it in `make test`) of the table. A test is FOLDER/FILE::FUNCTION, with [PARAMETERS] for one of its cases."""
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(line.split("\t")) for line in lines]


def names(item):
    """What the table may call a test of pytest: with its parameters, and without."""
    whole = f"{item.path.relative_to(HERE)}::{item.name}"
    return {whole, whole.partition("[")[0]}


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long; only run by `make long`")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests of `make long`, too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    shown = {test for test, _ in rows()}
    left = [item for item in items if "long" in item.keywords or names(item) & shown]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]
