# SPDX-License-Identifier: Apache-2.0
"""Installations whose parts do not belong together say so in one line."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from command import ROOT, TONNAGE

VERSION = (ROOT / "python/tonnage/guest/version").read_text().strip()


@pytest.fixture
def libraries(tmp_path):
    """A folder lib/tonnage like the built one, with a guest of its own."""
    folder = tmp_path / "lib tonnage"
    folder.mkdir()
    for entry in (TONNAGE.parent.resolve().parent / "lib/tonnage").iterdir():
        if entry.name != "guest":
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "python/tonnage/guest", folder / "guest")
    return folder


def run(libraries, *words):
    environment = {**os.environ, "TONNAGE_LIB": str(libraries)}
    return subprocess.run([TONNAGE, *words], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", [["run"], ["fix"], ["fit"]])
@pytest.mark.parametrize("other", ["0.0.9", "99.1.2", "", "\x1b[31m"])
def test_a_guest_of_another_version(libraries, command, other):
    (libraries / "guest/version").write_text(other + "\n")
    done = run(libraries, *command, "--", "true")
    assert done.returncode == 125 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
    assert f"this is tonnage {VERSION}, but its Python parts in {libraries}/guest are of version" in done.stderr
    assert "pip install --force-reinstall tonnage" in done.stderr


def test_the_same_version_runs(libraries):
    done = run(libraries, "run", "--", "true")
    assert done.returncode == 12 and "Undecided" in done.stderr


def test_a_guest_without_a_version(libraries):
    (libraries / "guest/version").unlink()
    done = run(libraries, "run", "--", "true")
    assert done.returncode == 125 and done.stderr.count("\n") == 1 and "the installation is incomplete" in done.stderr


def test_a_plugin_of_pytest_of_another_version(tmp_path):
    """The command on the PATH is older than what is installed beside pytest."""
    shutil.copytree(ROOT / "python/tonnage", tmp_path / "tonnage", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tonnage/guest/version").write_text("0.9.9\n")
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.tonnage\ndef test_it(): pass\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment.update(PYTHONPATH=str(tmp_path), PATH=f"{TONNAGE.parent}:{os.environ['PATH']}")
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "tonnage.pytest_plugin", "-p", "no:cacheprovider", str(tmp_path)],
                          env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 4 and f"is version {VERSION}, the plugin of pytest in this environment is of 0.9.9" in done.stderr


def test_one_version_everywhere():
    told = subprocess.run([TONNAGE, "--version"], capture_output=True, text=True).stdout
    package = re.match(r"tonnage \((.*?)\)", (ROOT / "debian/changelog").read_text()).group(1)
    assert told == f"tonnage {VERSION}\n" and package == VERSION
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()
