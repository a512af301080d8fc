# SPDX-License-Identifier: Apache-2.0
"""`tonnage run --then`, without PyTorch: each command finds the files that the one before left, and real files stay as they were."""

import json
import subprocess

import pytest
from command import TONNAGE

FIRST = """
mkdir -p made/inner && echo one > made/inner/file && ln -s file made/inner/link && chmod 640 made/inner/file
echo changed > kept; rm gone; mv old new; truncate -s 5G large; printf end >> large
"""
SECOND = """
test "$(cat made/inner/link)" = one && test "$(stat -c %a made/inner/file)" = 640 && test "$(readlink made/inner/link)" = file &&
test "$(cat kept)" = changed && test ! -e gone && test ! -e old && test "$(cat new)" = older &&
test $(stat -c %s large) -eq 5368709123 && test "$(tail -c 3 large)" = end && test $(du -m large | cut -f1) -lt 10 &&
echo two >> made/inner/file && test $(wc -l < made/inner/file) = 2
"""


def run(folder, *words, timeout=120):
    report = folder / "report.json"
    done = subprocess.run([str(TONNAGE), "run", "--gpu=rtx3060", "--json", str(report), *words], cwd=folder, timeout=timeout,
                          capture_output=True, text=True)  # fmt: skip
    return done, json.loads(report.read_text()) if report.exists() else None


@pytest.fixture
def folder(tmp_path):
    for name, text in (("kept", "as it was\n"), ("gone", "still here\n"), ("old", "older\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_next_command_finds_what_the_one_before_left(folder):
    before = {path.name: path.read_text() for path in folder.iterdir()}
    done, report = run(folder, "--then", SECOND, "--then", "grep -q two made/inner/file", "--", "sh", "-c", FIRST)
    assert [one["exit_status"] for one in report["executions"]] == [12, 12, 12], done.stderr  # none used the card, none failed
    assert done.returncode == 12 and "did not use the card" in done.stderr
    assert {path.name: path.read_text() for path in folder.iterdir() if path.name != "report.json"} == before
    assert report["scratch"] is not None and [one["scratch"] for one in report["executions"][:2]] == [None, None]


def test_a_failure_decides_and_ends_the_chain(folder):
    done, report = run(folder, "--then", "sh -c 'exit 3'", "--then", "true", "--", "true")
    assert done.returncode == 3 == report["exit_status"] and len(report["executions"]) == 2
    assert "1. true" in done.stderr and "3. true: not run" in done.stderr, done.stderr
    assert all(one["executions"] is None for one in report["executions"])


def test_without_then_there_are_no_executions(folder):
    done, report = run(folder, "--", "true")
    assert report["executions"] is None and "commands" not in done.stderr


def test_a_secret_of_a_later_command_is_masked(folder):
    done, report = run(folder, "--then", "true --api-key hf_abcdefghijklmnopqrstuvwxyz012345", "--then",
                       "true '--token=hf_abcdefghijklmnopqrstuvwxyz012345'", "--", "true")  # fmt: skip
    assert "hf_abcdef" not in done.stderr and "hf_abcdef" not in json.dumps(report)


def test_commands_of_plain_words_and_of_the_shell(folder):
    done, _ = run(folder, "--then", "A=1 sh -c 'test \"$A\" = 1'", "--then", "test -e kept", "--", "true")
    assert done.returncode == 12, done.stderr


@pytest.mark.parametrize("words, expected", [
    (["--then", "  ", "--", "true"], "--then needs a command"),
    (["--then", "no-such-program --resume", "--", "true"], "program not found: no-such-program"),
    (["--then", "true"] * 16 + ["--", "true"], "15 times"),
    (["--then", "true", "--write-baseline", "b.json", "--", "true"], "speak of one command"),
])  # fmt: skip
def test_wrong_usage_is_one_line_and_nothing_is_started(folder, words, expected):
    done, report = run(folder, *words)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("tonnage: ") and expected in lines[0], done.stderr
    assert done.returncode == (127 if "not found" in expected else 2) and report is None
