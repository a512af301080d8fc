# SPDX-License-Identifier: Apache-2.0
"""Five frameworks that train and resume, without a mistake and with one: it is named with its line, cured by `fix --then`, and the patched
program resumes in the room shown. The programs and their right answers stand in bench/resume; the search for each cure is in `make long`."""

import os

import fork_servers
import pytest
from conftest import MAIN, TONNAGE, python_of
from resume import run as bench

ROWS = {row["name"]: row for row in bench.programs()}


class Forked(bench.Folder):
    """Its programs are forked (../fork_servers.py)."""

    def start(self, words):
        forks = fork_servers.can_fork(words[words.index("--") + 1 :], {})
        done = fork_servers.run_forked(TONNAGE, self.python, [], words, self.path, os.environ, timeout=600) if forks else None
        return super().start(words) if done is None else done


@pytest.mark.parametrize("name", ["nanogpt", "dcp"])
def test_a_mistake_is_named_and_a_change_applied_for_good(name, tmp_path):
    folder = Forked(tmp_path, ROWS[name], python_of(MAIN))
    missing, shown = bench.missing_of_run(folder)
    assert not missing, shown
    missing, shown = bench.missing_of_applied(folder, "map_location")
    assert not missing, shown


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_fix_finds_the_cures(name, tmp_path):
    folder = bench.Folder(tmp_path, ROWS[name], python_of(MAIN))
    missing, shown = bench.missing_of_run(folder)
    assert not missing, shown
    missing, shown = bench.missing_of_fix(folder, {})
    assert not missing, shown
