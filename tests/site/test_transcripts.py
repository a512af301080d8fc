# SPDX-License-Identifier: Apache-2.0
"""Every transcript of the site and of README.md is what the commands print (transcripts.py says what may differ)."""

import difflib

import fork_servers
import pytest
import transcripts

PAGES = {page.relative_to(transcripts.ROOT).as_posix(): page for page in transcripts.pages()}
CONSOLES = {name: [block for block in transcripts.blocks(page.read_text()) if block.kind == "console"] for name, page in PAGES.items()}


def check(page, folder, wanted):
    if not transcripts.PYTHON.exists():
        pytest.skip("environment torch-2.11.0 is missing: tools/envs torch-2.11.0")
    (folder / "job").mkdir()
    seen = transcripts.Folder(folder / "job", transcripts.columns(page), not fork_servers.is_fresh())
    for _, lines in transcripts.played(page.read_text(), seen, wanted):
        for command, written, printed in lines:
            before, after = transcripts.masked(written).splitlines(), transcripts.masked(printed).splitlines()
            difference = "\n".join(difflib.unified_diff(before, after, "the page", "the command", lineterm=""))
            assert not difference, f"{page}: $ {command}\n{difference}"


@pytest.mark.parametrize("name", [name for name, found in CONSOLES.items() if any(not block.long for block in found)])
def test_a_transcript_is_what_is_printed(name, tmp_path):
    check(PAGES[name], tmp_path, lambda block: not block.long)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, found in CONSOLES.items() if any(block.long for block in found)])
def test_a_long_transcript_is_what_is_printed(name, tmp_path):
    check(PAGES[name], tmp_path, lambda block: block.long)


def test_nothing_else_is_masked():
    same = transcripts.masked
    assert same("seen, 5.7 s\n") == same("seen, 12 s\n")
    assert same("in /tmp/tonnage-0-ab12CD/scratch") == same("in /tmp/tonnage-7-zzzzzz/scratch")
    assert same("  all in 9 s; nothing was\n    changed") == same("  all in 10 s; nothing\n    was changed") == same("  all in\n    100 s; nothing was changed")
    assert same("  all of it\n    was kept") != same("  all of it was\n    kept")
    for one, other in (("5.70 GiB", "5.71 GiB"), ("step 11", "step 12"), ("train.py:24", "train.py:25"), ("1.0x the time", "1.1x the time"),
                       ("2 steps", "3 steps"), ("status 10", "status 11")):  # fmt: skip
        assert same(one) != same(other)
    error = "Traceback (most recent call last):\n  File x\n    y\nValueError: a\n"
    assert same(error) == "Traceback (most recent call last):\n  ...\nValueError: a" != same(error.replace("a\n", "b\n"))


def test_every_kind_of_block_is_known():
    """A fence that looks like a transcript but is none would never be run."""
    for name, page in PAGES.items():
        assert page.read_text().count("\n```") == 2 * len(list(transcripts.blocks(page.read_text()))), name
        for block in transcripts.blocks(page.read_text()):
            assert block.kind == "console" or "$ tonnage" not in block.text, (name, block.text)
