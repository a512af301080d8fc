# SPDX-License-Identifier: Apache-2.0
"""tonnage fetch as a command: words that are wrong. What it fetches is tested in tests/vgpu/test_fetch.py."""

import pytest


@pytest.mark.parametrize("words", [[], [""], ["a", "b"], ["a", "--revision"], ["a", "--into="], ["a", "--unknown"], ["a", "--python=/nowhere"]])
def test_wrong_usage_is_one_line(tonnage, words):
    done = tonnage("fetch", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("tonnage: ") and done.stderr.count("\n") == 1


def test_help_says_that_it_opens_the_network(tonnage):
    done = tonnage("fetch", "--help")
    assert done.returncode == 0 and "only command that\nopens the network" in done.stdout
