# SPDX-License-Identifier: Apache-2.0
"""The documentation site. Its sources are tested by `make test`; that it builds and how it looks in a browser by `make long`, since
mkdocs has an environment of its own."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "doc/site"), str(ROOT / "tests/page"), str(ROOT / "tests")]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long; only run by `make long`")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests marked long, too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        chosen = [item for item in items if "long" not in item.keywords]
        config.hook.pytest_deselected(items=[item for item in items if "long" in item.keywords])
        items[:] = chosen
