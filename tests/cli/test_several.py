# SPDX-License-Identifier: Apache-2.0
"""`:::` between programs: what cannot be is one line and the documented status, before anything starts."""

import pytest


@pytest.mark.parametrize("words, status, said", [
    ([":::", "touch", "x"], 2, "an empty command beside :::"),
    (["touch", "x", ":::"], 2, "an empty command beside :::"),
    ([":::"], 2, "an empty command beside :::"),
    (["touch", "x", ":::", ":::", "touch", "y"], 2, "an empty command beside :::"),
    (["touch", "x", ":::", "nothing-of-this-name"], 127, "program not found: nothing-of-this-name"),
    (["touch", "x", ":::", "/etc/passwd"], 126, "program cannot be executed: /etc/passwd"),
    (["touch", "x", ":::", "a.ipynb"], 2, "a notebook runs alone"),
    (["touch", "x"] + [":::", "true"] * 16, 2, "at most 16 programs"),
])  # fmt: skip
def test_commands_that_cannot_be(tonnage, words, status, said):
    done = tonnage("run", "--gpu=rtx3060", "--json", "report.json", "--", *words)
    assert done.returncode == status and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tonnage.cwd / "x").exists() and not (tonnage.cwd / "report.json").exists()


@pytest.mark.parametrize("options", [["--then", "true"], ["--request", "http://127.0.0.1:1/"], ["--nodes", "2"], ["--ranks", "0"],
                                     ["--write-baseline", "b.json"], ["--cells", "1"], ["--python", "python3"],
                                     ["--keep-going"]])  # fmt: skip
def test_what_speaks_of_one_program(tonnage, options):
    done = tonnage("run", "--gpu=rtx3060", *options, "--", "true", ":::", "true")
    assert done.returncode == 2 and done.stderr.startswith("tonnage: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("command", ["fix", "fit"])
def test_searches_take_one_program(tonnage, command):
    done = tonnage(command, "--gpu=rtx3060", "--", "true", ":::", "true")
    assert done.returncode == 2 and "--other SIZE" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_word_with_colons_in_it_is_a_word(tonnage):
    done = tonnage("run", "--gpu=rtx3060", "--", "sh", "-c", "echo a ::: b", "a:::b")
    assert "a ::: b" in done.stdout and "By program" not in done.stderr, done.stderr
