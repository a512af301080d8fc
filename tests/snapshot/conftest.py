# SPDX-License-Identifier: Apache-2.0
"""Real snapshots, made under `tonnage run` by real wheels, and the C reader's dump program.

A test whose environment is missing is skipped and says so.
"""

import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long; only run by `make long`")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests marked long, too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        config.hook.pytest_deselected(items=[item for item in items if "long" in item.keywords])
        items[:] = [item for item in items if "long" not in item.keywords]


@pytest.fixture(scope="session")
def dump_program():
    """Path of the program of dump.c, built where it is missing."""
    named = os.environ.get("TONNAGE_SNAPSHOT_DUMP")
    if named:
        return pathlib.Path(named)
    program = ROOT / "build/debug/tests/snapshot_dump"
    if not (ROOT / "build/debug/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "debug"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "debug", "--target", "snapshot_dump"], cwd=ROOT, check=True,
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
def recorded(tmp_path_factory):
    """Runs programs/record.py on an environment (once) with an allocator configuration; the folder with its files."""
    made = {}

    def record(environment, configuration=""):
        python = ENVIRONMENTS / environment / "bin/python"
        if not python.exists():
            pytest.skip(f"no environment {environment} (make envs)")
        key = environment, configuration
        if key not in made:
            made[key] = tmp_path_factory.mktemp("snapshots")
            run_recorder(python, made[key], configuration, [])
            if not configuration:
                run_recorder(python, made[key], configuration, ["--plain"], "--snapshot", made[key] / "run.pickle")
        return made[key]

    return record


def run_recorder(python, folder, configuration, arguments, *options):
    command = [TONNAGE, "run", "--quiet", "--gpu", "rtx3060", "--writes", "allow", "--steps", "all", *options, "--",
               python, HERE / "programs/record.py", folder, *arguments]
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": configuration}
    (folder / "done").unlink(missing_ok=True)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env=environment)
    assert (folder / "done").exists(), f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
