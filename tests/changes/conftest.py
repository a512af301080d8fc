# SPDX-License-Identifier: Apache-2.0
"""Runs small programs with and without a change, on the virtual GPU or, with the guest hook alone, on the CPU.

A program on the virtual GPU ends by itself; what the changes told is copied out of the run's folder before it goes.
A patch is applied by patch(1) to a copy of the program, and the copy runs without any change.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import fork_servers  # noqa: E402
import long_tests  # noqa: E402
from long_tests import pytest_addoption, pytest_collection_modifyitems  # noqa: E402, F401

GUEST = ROOT / "python/tonnage/guest"
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
TEMPORARY = tempfile.TemporaryDirectory(prefix="tests-of-tonnage-")
MIB = 1 << 20
# A child of `tonnage run` that keeps what the changes told, since the run's folder goes at the end.
KEEP = 'out=$1; shift; "$@"; status=$?; cp "$TONNAGE_RUN"/changes/*.json "$out" 2>/dev/null; exit $status'


# What a run on the CPU sets, and the import of torch sees.
ON_CPU = ("TONNAGE_INIT", "TONNAGE_GPU", "OMP_NUM_THREADS")
# Variables that programs read themselves, when they run.
OWN = ("BATCH_SIZE", "GRAD_ACCUM_STEPS")


def pytest_configure(config):
    if not fork_servers.is_fresh():
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads than cores only wait for each other
    long_tests.pytest_configure(config)
    config.addinivalue_line("markers", "fresh: its programs are started by themselves, not forked (../fork_servers.py)")


@dataclasses.dataclass
class Outcome:
    """What one run left behind."""

    status: int
    stdout: str
    stderr: str
    report: dict
    documents: list
    folder: pathlib.Path

    @property
    def allocated(self):
        return self.report["peak"]["allocated_bytes"]

    @property
    def peaks(self):
        return {name: self.report["peak"][name] for name in ("allocated_bytes", "reserved_bytes", "device_bytes")}

    @property
    def document(self):
        assert len(self.documents) == 1, (self.documents, self.stdout, self.stderr[-3000:])
        return self.documents[0]

    def change(self, name):
        """What a change told; it must have been applied."""
        entry = next(entry for entry in self.document["changes"] if entry["id"] == name)
        assert entry["applied"], (entry, self.stderr[-3000:])
        return entry


@pytest.fixture
def fresh(request):
    return request.node.get_closest_marker("fresh") is not None


@pytest.fixture(scope="session")
def python():
    found = ENVIRONMENTS / "torch-2.11.0/bin/python"
    if not found.exists():
        pytest.skip("environment torch-2.11.0 is missing: tools/envs torch-2.11.0")
    return str(found)


def write(folder, program):
    path = pathlib.Path(folder) / "program.py"
    path.write_text(textwrap.dedent(program).lstrip("\n"))
    return path


def documents_of(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def imports_of(program):
    """What a server has imported for a program: transformers, where that begins with a library of trainers. Not Lightning: changes ask
    whether the program has it."""
    trains = re.search(r"(?m)^ *(from|import)\b.*\b(transformers|accelerate|lightning)\b", program)
    return (*fork_servers.IMPORTS, *(fork_servers.TRAINERS if trains else ()))


@pytest.fixture
def virtual(tmp_path, python, fresh):
    """virtual(program, changes=None, patch=None) -> Outcome of a run that must end by itself, on a card of 24 GiB.
    files: {name: text} that lie beside the program."""
    if not TONNAGE.exists():
        pytest.fail(f"{TONNAGE} is missing: make build")
    numbers = iter(range(100))

    def run(program, changes=None, patch=None, status=0, arguments=(), files=None, python=python, **environment):
        folder = tmp_path / f"run{next(numbers)}"
        kept = folder / "kept"
        kept.mkdir(parents=True)
        path = write(folder, program)
        for name, text in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        if patch is not None:
            apply(patch, folder)
        report = folder / "report.json"
        words = [python, path.name, *arguments]
        options = ["--memory=24GiB", "--steps=all", "--writes=allow", "--no-detail", "--quiet", "--json", str(report)]
        settings = {**os.environ, "HF_HUB_OFFLINE": "1", "TMPDIR": TEMPORARY.name, **environment}
        settings.pop("TONNAGE_CHANGES", None)
        if changes:
            settings["TONNAGE_CHANGES"] = changes
        done = None
        if not fresh and fork_servers.can_fork(words, environment, OWN):
            command = [str(TONNAGE), "run", *options, "--", *words]
            done = fork_servers.run_forked(TONNAGE, python, options, command, folder, settings, kept,
                                           imports=imports_of(program), timeout=300)  # fmt: skip
        if done is None:
            command = [str(TONNAGE), "run", *options, "--", "sh", "-c", KEEP, "sh", str(kept), *words]
            done = subprocess.run(command, cwd=folder, env=settings, timeout=300, capture_output=True, text=True)
        outcome = Outcome(done.returncode, done.stdout, done.stderr, json.loads(report.read_text()),
                          documents_of(kept), folder)  # fmt: skip
        assert outcome.status == status, (command, done.stdout[-2000:], done.stderr[-6000:])
        return outcome

    return run


@pytest.fixture
def on_cpu(tmp_path, python, fresh):
    """on_cpu(program, changes=None, patch=None) -> Outcome of a run with the guest hook and without a GPU."""
    numbers = iter(range(100))

    def run(program, changes=None, patch=None, status=0, arguments=(), **environment):
        folder = tmp_path / f"cpu{next(numbers)}"
        (folder / "run").mkdir(parents=True)
        (folder / "run/ledger").write_bytes(b"\0" * 8192)
        path = write(folder, program)
        if patch is not None:
            apply(patch, folder)
        settings = {**os.environ, "TONNAGE_RUN": str(folder / "run"), "PYTHONPATH": str(GUEST), "TONNAGE_STEPS": "all",
                    "TONNAGE_INIT": "real", "TONNAGE_GPU": "real", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
                    **environment}  # fmt: skip
        settings.pop("TONNAGE_CHANGES", None)
        if changes:
            settings["TONNAGE_CHANGES"] = changes
        words = [python, path.name, *arguments]
        done = None
        if not fresh and fork_servers.can_fork(words, environment, OWN):
            done = fork_servers.run_hooked(python, words[1:], folder, settings, ON_CPU, imports=imports_of(program))
        if done is None:
            done = subprocess.run(words, cwd=folder, env=settings, timeout=300, capture_output=True, text=True)
        outcome = Outcome(done.returncode, done.stdout, done.stderr, {}, documents_of(folder / "run/changes"), folder)
        assert outcome.status == status, (done.stdout[-2000:], done.stderr[-6000:])
        return outcome

    return run


def apply(patch, folder):
    """Applies a patch as its reader would."""
    assert patch, "there is no patch"
    tool = shutil.which("patch")
    assert tool, "patch(1) is missing"
    done = subprocess.run([tool, "-p1", "--fuzz=0"], cwd=folder, input=patch, text=True, capture_output=True)
    assert done.returncode == 0, (done.stdout, done.stderr, patch)


_unchanged = {}  # what was run as it is -> its outcome: one run serves all tests of the process that ask the same of it


def once(run):
    """run(program, ...) -> Outcome of the program as it is, of which one serves all."""

    def unchanged(program, **more):
        key = json.dumps([run.__qualname__, program, more], sort_keys=True)
        if key not in _unchanged:
            _unchanged[key] = run(program, **more)
        return _unchanged[key]

    return unchanged


@pytest.fixture
def unchanged(virtual):
    return once(virtual)


@pytest.fixture
def unchanged_on_cpu(on_cpu):
    return once(on_cpu)


@pytest.fixture
def saves(virtual, unchanged):
    """saves(program, id[=value]) -> (unchanged, changed, entry), once the patch has the change's peaks to the byte."""

    def check(program, changes, patched=True, **more):
        before = unchanged(program, **more)
        after = virtual(program, changes, **more)
        entry = after.change(changes.partition("=")[0].partition(",")[0])
        assert entry["how"]
        assert after.stdout.count("\n") > 0, "the program must say how it ended"
        if patched:
            by_hand = virtual(program, patch=entry["patch"], **more)
            assert by_hand.peaks == after.peaks, entry["patch"]
        return before, after, entry

    return check
