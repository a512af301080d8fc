# SPDX-License-Identifier: Apache-2.0
"""What a fork server imports before it knows of the first trial: what the program begins with, and not the program's own modules."""

import os
import sys

import pytest
from conftest import GUEST

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(GUEST))
from _tonnage_guest import forks  # noqa: E402

FILES = {
    "train.py": "import json\nfrom own import model\n",
    "own/__init__.py": "import wave\n",
    "own/__main__.py": "from .model import Model\nimport shelve\n",
    "own/model.py": "from . import deep\nfrom .deep.part import Part\nimport own.model\nimport colorsys\nclass Model: pass\n",
    "own/deep/__init__.py": "from ..other import x\n",
    "own/deep/part.py": "import mailbox\ndef late():\n    import plistlib\nclass Part: pass\n",
    "own/other.py": "import netrc, missing_module\nx = 1\n",
    "own/unread.py": "import sched\n",
    "own/broken.py": "this is no Python",
}
OF_MODEL = ["wave", "netrc", "missing_module", "mailbox", "colorsys"]


@pytest.mark.parametrize(
    "words, imported",
    [
        (["train.py", "--lr", "1"], ["json", *OF_MODEL]),
        (["-m", "own", "-c", "x"], [*OF_MODEL, "shelve"]),
        (["-m", "own.model"], OF_MODEL),
        (["-c", "from own.deep import part; part.late()"], ["wave", "netrc", "missing_module", "mailbox"]),
        (["-c", "import own.broken, own.none"], ["wave"]),
        (["-m", "elsewhere"], []),
        (["none.py"], []),
    ],
)
def test_what_a_program_begins_with(tmp_path, monkeypatch, words, imported):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forks, "_import", lambda name, wanted: found.append(name))
    monkeypatch.setattr(sys, "argv", [words[0], *words[2 if words[0].startswith("-") else 1:]])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-u", *words])
    forks._import_what_it_begins_with()
    assert found == imported


def test_no_more_modules_are_read_than_are_worth_it(tmp_path, monkeypatch):
    """Each imports the next one."""
    for number in range(60):
        (tmp_path / ("part%d.py" % number)).write_text("import part%d\nimport lib%d\n" % (number + 1, number))
    found = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forks, "_import", lambda name, wanted: found.append(name))
    monkeypatch.setattr(sys, "argv", ["part0.py"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "part0.py"])
    forks._import_what_it_begins_with()
    assert len([name for name in found if name.startswith("lib")]) == forks._MOST_FOLLOWED + 1
