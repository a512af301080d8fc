# SPDX-License-Identifier: Apache-2.0
"""A run replaces nothing real: whatever a program saves lies in the scratch folder afterwards, and only there."""

import hashlib
import os
import pathlib

import pytest


def fingerprint(folder):
    """Every name below a folder with what it is, its mode, its time and its bytes."""
    rows = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        state = path.lstat()
        if path.is_symlink():
            content = os.readlink(path)
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        rows[str(path.relative_to(folder))] = (oct(state.st_mode), state.st_mtime_ns, content)
    return rows


@pytest.fixture
def world(tmp_path):
    """A working folder, a folder elsewhere and a home, each with files that matter."""
    names = {
        "work": ["checkpoint.pt", "model.safetensors", "last.pt", "log.txt", "removed.txt", "moved.txt"],
        "elsewhere": ["checkpoint.pt", "target.pt"],
        "home": ["best.pt"],
    }
    for folder, files in names.items():
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).write_text("before\n")
    (tmp_path / "work/old").mkdir()
    (tmp_path / "work/old/precious.txt").write_text("before\n")
    (tmp_path / "work/out").mkdir()
    (tmp_path / "work/out/keep.txt").write_text("before\n")
    (tmp_path / "work/link.pt").symlink_to(tmp_path / "elsewhere/target.pt")
    return tmp_path


def run_saving(tonnage, world, *options, more=()):
    return tonnage(
        "torch-2.11.0",
        ["programs/save_everything.py", str(world / "elsewhere"), *more],
        "--steps=all",
        *options,
        cwd=world / "work",
        env={"HOME": str(world / "home")},
    )


def test_nothing_is_replaced(tonnage, world):
    before = fingerprint(world)
    run = run_saving(tonnage, world)
    assert "saved everything" in run.stdout, run.explain()
    assert run.verdict == "fits", run.explain()
    after = fingerprint(world)
    for row in ("work/tonnage-report.json", "work"):
        after.pop(row, None)  # the report is ours, asked for by --json
        before.pop(row, None)
    assert after == before
    scratch = pathlib.Path(run.report["scratch"])
    saved = scratch / "files" / str(world / "work/last.pt").lstrip("/")
    assert not scratch.exists() or saved.exists() or list(scratch.rglob("last.pt")), run.explain()
    assert str(scratch) in run.stderr, "the scratch folder is announced"


def test_writes_can_be_allowed(tonnage, world):
    run = run_saving(tonnage, world, "--writes=allow", more=["files"])
    assert run.verdict == "fits", run.explain()
    assert (world / "elsewhere/target.pt").read_bytes() != b"before\n"
    assert (world / "work/log.txt").read_text() == "before\nappended\n"
    assert not (world / "work/removed.txt").exists()
