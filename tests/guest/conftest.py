# SPDX-License-Identifier: Apache-2.0
"""Runs small programs with the guest hook, without `tonnage run`: a run folder with a ledger of zeros is all it needs.

Each test runs with every torch of the environments that tools/envs makes; one that is missing is skipped and says so.
Without --long the oldest and the newest wheel only run the files of BOTH_ENDS.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import fork_servers  # noqa: E402
import long_tests  # noqa: E402
from long_tests import pytest_addoption  # noqa: E402, F401

GUEST = ROOT / "python/tonnage/guest"
FAKE = HERE / "fake/site-packages"  # there, as an installed package: its frames are not the user's
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
WHEELS = ("torch-2.6.0", "torch-2.11.0", "torch-2.15.0")
MAIN = "torch-2.11.0"
# What a server is started with, where a program has it: the virtual GPU; no run, which is Python without the hook; the computer's memory.
AT_IMPORT = ("LD_PRELOAD", "TONNAGE_LIB", "TONNAGE_GPU", "TONNAGE_RUN", "TONNAGE_HOST_MEMORY")
LIBRARIES = ROOT / "build/release/lib/tonnage"
BOTH_ENDS = {"test_boot.py", "test_points.py"}


def pytest_configure(config):
    long_tests.pytest_configure(config)
    config.addinivalue_line("markers", "fresh: its programs are started by themselves, not forked (../fork_servers.py)")


def pytest_collection_modifyitems(config, items):
    long_tests.pytest_collection_modifyitems(config, items)

    def chosen(item):
        wheel = item.callspec.params.get("wheel", MAIN) if hasattr(item, "callspec") else MAIN
        return config.getoption("--long") or wheel == MAIN or item.path.name in BOTH_ENDS

    config.hook.pytest_deselected(items=[item for item in items if not chosen(item)])
    items[:] = [item for item in items if chosen(item)]


class Result:
    """What a program left behind."""

    def __init__(self, done, folder):
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.documents = [json.loads(path.read_text()) for path in sorted((folder / "guest").glob("*.json"))]
        self.words = struct.unpack("<8Q", (folder / "ledger").read_bytes()[64:128])

    @property
    def document(self):
        assert len(self.documents) == 1, (self.documents, self.stderr)
        return self.documents[0]


@pytest.fixture(params=WHEELS)
def wheel(request):
    python = ENVIRONMENTS / request.param / "bin/python"
    if not python.exists():
        pytest.skip(f"environment {request.param} is missing: tools/envs {request.param}")
    return str(python)


@pytest.fixture
def run_with(request, tmp_path):
    """run_with(python, program text or list of words, **environment) -> Result. Where the test's file says FORKED and the
    test is not marked fresh, or where the call says forked, a program may be forked (../fork_servers.py)."""
    of_file = getattr(request.module, "FORKED", False) and request.node.get_closest_marker("fresh") is None
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    (folder / "ledger").write_bytes(b"\0" * 8192)

    def run(python, program, timeout=120, forked=of_file, **environment):
        if isinstance(program, str):
            path = tmp_path / "program.py"
            path.write_text(textwrap.dedent(program))
            program = [str(path)]
        search = [str(GUEST), str(FAKE)] + ([environment.pop("search")] if "search" in environment else [])
        settings = {**os.environ, "TONNAGE_RUN": str(folder), "PYTHONPATH": os.pathsep.join(search),
                    "TONNAGE_STEPS": "all", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment}  # fmt: skip
        done = None
        if forked and len(search) == 2 and fork_servers.can_fork([python, *program], environment, AT_IMPORT):
            early = ["OMP_NUM_THREADS", *(name for name in AT_IMPORT if name in environment)]
            done = fork_servers.run_hooked(python, program, tmp_path, settings, early, [FAKE], timeout)
        if done is None:
            done = subprocess.run([python, *program], cwd=tmp_path, env=settings, timeout=timeout, capture_output=True,
                                  text=True)  # fmt: skip
        return Result(done, folder)

    return run


_started = {}  # wheel -> what it left behind


@pytest.fixture
def started(run_with, wheel):
    """programs/start.py in a process by itself, one for all tests of this process: what it printed, and its Result."""
    if wheel not in _started:
        done = run_with(wheel, ["-W", "error", str(HERE / "programs/start.py")])
        assert done.status == 0, done.stderr
        _started[wheel] = json.loads(done.stdout), done
    return _started[wheel]


@pytest.fixture
def virtual(run_with):
    """As run_with, with the virtual GPU preloaded."""
    preload = LIBRARIES / "libtonnage-preload.so"
    if not preload.exists():
        pytest.skip("no virtual GPU: make build")

    def run(python, program, **environment):
        done = run_with(python, program, LD_PRELOAD=str(preload), TONNAGE_LIB=str(LIBRARIES), TONNAGE_GPU="virtual",
                        **environment)  # fmt: skip
        assert done.document["hook_error"] is None and done.document["cuda_initialized"], done.stderr
        return done

    return run
