# SPDX-License-Identifier: Apache-2.0
"""What processes have noted of data (--data shape) is added up by tree, whatever stands in the file."""

import json
import subprocess
import sys

import pytest
from test_weights import ROOT, TONNAGE, run

LINES = [
    b"images\t100\t1\t-\t/data/train/cat/1.jpg", b"images\t100\t1\t-\t/data/train/cat/1.jpg",  # of two processes
    b"images\t200\t1\tsizes\t/data/train/dog/1.jpg", b"images\t50\t1\t-\t/data/train/cat/2.jpg",
    b"images\t7\t1\t-\t/data/val/cat/1.jpg", b"images\t3\t1\t-\t(memory)/00ff-3",
    b"images\t9\t1\t-\t/other/deep/er/1.png", b"images\t9\t1\t-\t/top.png",
    b"data_set\t4000\t20\trows,lengths\t/data/a.arrow", b"data_set\t4000\t20\trows,lengths\t/data/a.arrow", b"data_set\t1\t2\t-\t/data/b.arrow",
    b"other\t1\t1\t-\t/x", b"images\t1", b"", b"images\t\xff\t\t\t\xff\xfe/\x07", b"images\t5\t1\t-\t/cut/of",
]  # fmt: skip
WRITE = "import os, sys; open(os.path.join(os.environ['TONNAGE_RUN'], 'state/data'), 'wb').write(bytes.fromhex(sys.argv[1]))"


def test_notes_are_added_up(tmp_path):
    done, document = run(tmp_path, sys.executable, "-c", WRITE, b"\n".join(LINES).hex(), options=["--data", "shape"])
    assert done.returncode == 12, done.stderr
    rows = [(row["kind"], row["path"], row["count"], row["bytes"], row["assumed"]) for row in document["stand_ins"] if "?" not in (row["path"] or "?")]
    assert sorted(rows) == sorted([
        ("images", "/data/train", 3, 350, ["sizes"]), ("images", "/data/val/cat", 1, 7, []), ("images", "(memory)", 1, 3, []),
        ("images", "/other/deep/er", 1, 9, []), ("images", "/top.png", 1, 9, []),
        ("data_set", "/data/a.arrow", 20, 4000, ["rows", "lengths"]), ("data_set", "/data/b.arrow", 2, 1, [])])  # fmt: skip
    text = " ".join(done.stderr.split())
    assert "2 files of data sets (3.9 KiB) are shapes only (--data shape): values are made up" in text
    assert "not known of them, and assumed: how many rows they have, how long each text and list is" in text
    schema = pytest.importorskip("jsonschema").Draft202012Validator(json.loads((ROOT / "doc/format/run.schema.json").read_text()))
    schema.validate(document)


def test_the_environment_says_which(tmp_path):
    told = "import os; print(os.environ['TONNAGE_DATA'])"
    for options, word in (((), "real"), (("--data", "shape"), "shape"), (("--data=real",), "real")):
        assert run(tmp_path, sys.executable, "-c", told, options=options)[0].stdout == word + "\n"
    done = subprocess.run([TONNAGE, "fix", "--data", "shape", "--dry-run", "--", "true"], capture_output=True, text=True)
    assert "unknown option" not in done.stderr
