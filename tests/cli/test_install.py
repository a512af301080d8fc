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
        if entry.name not in ("guest", "changes"):
            (folder / entry.name).symlink_to(entry)
    for name in ("guest", "changes"):
        shutil.copytree(ROOT / "python/tonnage" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
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


def test_a_checkout_in_a_folder_with_a_space(libraries, tmp_path):
    """There the guest is a link, and what changes a program lies beside what it leads to."""
    parts = tmp_path / "python parts"
    parts.mkdir()
    for name in ("guest", "changes"):
        (libraries / name).rename(parts / name)
    (libraries / "guest").symlink_to(parts / "guest")
    environment = {**os.environ, "TONNAGE_LIB": str(libraries), "TONNAGE_CHANGES": "accumulate=2"}
    program = "import sys; print('_tonnage_changes' in sys.modules)"
    done = subprocess.run([TONNAGE, "run", "--", sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n" and "stopped recording" not in done.stderr, done.stderr


# Waits until every Python file of ours is compiled, as a long program does.
WAITS = """
import glob, sys, time
until = time.monotonic() + 30
while time.monotonic() < until and any(len(glob.glob(folder + "/__pycache__/*.pyc")) < len(glob.glob(folder + "/*.py")) for folder in sys.argv[1:]):
    time.sleep(0.01)
"""


def compile_ours(libraries, *command):
    """Runs until it is said that our files are compiled; the file that says so."""
    package = libraries / "guest/_tonnage_guest"
    for _ in range(5):  # a run does not wait for it
        run(libraries, "run", "--", *command, str(package), str(libraries / "changes"))
        if found := list(package.glob("__pycache__/*.compiled")):
            return found[0]
    raise AssertionError("not compiled")


@pytest.mark.parametrize("launched", [False, True], ids=["python", "launcher"])
def test_our_python_files_are_compiled_once(libraries, tmp_path, launched):
    """By the program's Python, be it the program or named in its first line; again where one has changed since."""
    launcher = tmp_path / "launch"
    launcher.write_text(f"#!{sys.executable} -u\n{WAITS}")
    launcher.chmod(0o755)
    command = [str(launcher)] if launched else [sys.executable, "-c", WAITS]
    mark = compile_ours(libraries, *command)
    compiled = {path.name: path.stat().st_mtime_ns for path in libraries.glob("**/__pycache__/*.pyc") if not path.is_symlink()}
    tag = sys.implementation.cache_tag
    assert {f"{name}.{tag}.pyc" for name in ("sitecustomize", "boot", "ending")} <= set(compiled)
    when = mark.stat().st_mtime_ns
    run(libraries, "run", "--", *command)
    assert mark.stat().st_mtime_ns == when
    source = libraries / "guest/_tonnage_guest/ending.py"
    source.write_text(source.read_text() + "\n# changed\n")
    (mark.parent / f"ending.{tag}.pyc").unlink()
    assert compile_ours(libraries, *command) == mark and mark.stat().st_mtime_ns > when
    again = {path.name: path.stat().st_mtime_ns for path in mark.parent.glob("*.pyc")}
    assert [name for name in again if again[name] != compiled[name]] == [f"ending.{tag}.pyc"]


def test_a_folder_of_somebody_else_is_left_alone(libraries):
    """What cannot be written there is no error, and nothing is tried: a file stands where the folder would be."""
    (libraries / "guest/_tonnage_guest/__pycache__").write_text("")
    done = run(libraries, "run", "--", sys.executable, "-c", "print('ran')")
    assert done.stdout == "ran\n" and (libraries / "guest/_tonnage_guest/__pycache__").read_text() == ""


def test_what_pip_has_compiled_is_left_as_it_is(libraries, tmp_path):
    """pip would find a file that it does not know when it removes us."""
    installed = tmp_path / "site-packages/lib"
    installed.parent.mkdir()
    libraries.rename(installed)
    cache = installed / "guest/_tonnage_guest/__pycache__"
    cache.mkdir()
    (cache / "boot.pyc").write_text("pip's")
    for _ in range(2):
        run(installed, "run", "--", sys.executable, "-c", "print('ran')")
    assert [path.name for path in cache.iterdir()] == ["boot.pyc"]


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
