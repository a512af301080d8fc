# SPDX-License-Identifier: Apache-2.0
"""The documentation site. Its sources are tested by `make test`; that it builds and how it looks in a browser by `make long`, since
mkdocs has an environment of its own."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "doc/site"), str(ROOT / "tests/page"), str(ROOT / "tests")]
from long_tests import pytest_addoption, pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401
