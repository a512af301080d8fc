# SPDX-License-Identifier: Apache-2.0
"""Real snapshots, made under `tonnage run` by real wheels, and the C reader's dump program.

A test whose environment is missing is skipped and says so.
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import fork_servers  # noqa: E402
import long_tests  # noqa: E402
from long_tests import pytest_addoption, pytest_collection_modifyitems  # noqa: E402, F401

ROOT = HERE.parent.parent
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))


def pytest_configure(config):
    if not fork_servers.is_fresh():
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in tests/vgpu, whose fork servers serve here, too
    long_tests.pytest_configure(config)


@pytest.fixture(scope="session")
def dump_program():
    """Path of the program of dump.c, built where it is missing."""
    named = os.environ.get("TONNAGE_SNAPSHOT_DUMP")
    if named:
        return pathlib.Path(named)
    program = ROOT / "build/release/tests/snapshot_dump"
    if not (ROOT / "build/release/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "snapshot_dump"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    return program


@pytest.fixture(scope="session")
def dump(dump_program):
    """Reads a file by the C reader and returns what the dump program printed, as Python objects."""

    def read(path):
        done = subprocess.run([dump_program, path], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return read


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once(name, make): a folder that make(folder) has filled, once for all processes of pytest that work side by side."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root

    def folder_of(name, make):
        folder, done = root / name, root / f"{name}.done"
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return folder_of


@pytest.fixture(scope="session")
def recorded(once):
    """Runs programs/record.py on an environment (once) with an allocator configuration; the folder with its files."""

    def record(environment, configuration=""):
        python = ENVIRONMENTS / environment / "bin/python"
        if not python.exists():
            pytest.skip(f"no environment {environment} (make envs)")

        def make(folder):
            run_recorder(python, folder, configuration, [])
            if not configuration:
                run_recorder(python, folder, configuration, ["--plain"], "--snapshot", folder / "run.pickle")

        return once(f"snapshots-{environment}-{configuration.partition(':')[0] or 'usual'}", make)

    return record


def run_recorder(python, folder, configuration, arguments, *options):
    (folder / "done").unlink(missing_ok=True)
    done = run(python, ["record.py", folder, *arguments], configuration, *options)
    assert (folder / "done").exists(), f"status {done.returncode}\n{done.stdout}\n{done.stderr}"


def run(python, program, configuration="", *options):
    """A program of programs/ with its arguments under `tonnage run`. It may be forked (../fork_servers.py)."""
    words = [str(word) for word in (python, HERE / "programs" / program[0], *program[1:])]
    options = ["--quiet", "--gpu=rtx3060", "--writes=allow", "--steps=all", *map(str, options)]
    command = [str(TONNAGE), "run", *options, "--", *words]
    changed = {"PYTORCH_CUDA_ALLOC_CONF": configuration} if configuration else {}
    streams = {"cwd": HERE, "timeout": 300}
    done = None
    if fork_servers.can_fork(words, changed):
        done = fork_servers.run_forked(TONNAGE, words[0], options, command, environment={**os.environ, **changed}, **streams)
    if done is None:
        done = subprocess.run(command, env={**os.environ, **changed}, capture_output=True, text=True, **streams)
    return done
