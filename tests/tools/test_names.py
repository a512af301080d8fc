# SPDX-License-Identifier: Apache-2.0
"""No two rooms of the sources give one name to two functions: the linker takes either of them, and says nothing."""

import collections
import pathlib
import subprocess

import pytest

RELEASE = pathlib.Path(__file__).resolve().parents[2] / "build/release"


def test_each_name_is_defined_in_one_room():
    archives = sorted((RELEASE / "src").rglob("*.a"))
    if not archives:
        pytest.fail("nothing is built: make build")
    defined = collections.defaultdict(set)
    for archive in archives:
        listing = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True, check=True).stdout
        for words in map(str.split, listing.splitlines()):
            if len(words) == 3 and words[1] in "TDBR":
                defined[words[2]].add(archive.name)
    assert len(defined) > 500
    assert {name: found for name, found in defined.items() if len(found) > 1} == {}
