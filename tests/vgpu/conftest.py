# SPDX-License-Identifier: Apache-2.0
"""Runs real programs, with real packages, under `tonnage run`.

The programs lie in jobs/ (what people write; nothing in them knows Tonnage) and programs/ (which look at one thing
each). The environments are made by tools/envs; a test whose environment is missing is skipped and says so.
"""

import dataclasses
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(HERE.parent))
import fork_servers  # noqa: E402
import long_tests  # noqa: E402
import moments  # noqa: E402
from long_tests import pytest_addoption, pytest_collection_modifyitems  # noqa: E402, F401

TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
MIB = 1 << 20
MAIN = "torch-2.11.0"
ENDS = ["torch-2.6.0", "torch-2.15.0"]  # of what is supported
FORKABLE = {MAIN, *ENDS, "prog-servers"}
# Of prog-servers one fork server has what programs begin with, and was started with these names of the environment. The folder stays empty: what a
# run writes lies elsewhere.
IN_SERVERS = ("torchvision", "datasets", "transformers.trainer", "flask", "fastapi", "uvicorn")
NO_HUB = {"HF_HOME": f"{tempfile.gettempdir()}/hub-of-nobody", "HF_DATASETS_OFFLINE": "1"}
# For tests that look at the ends in `make long` only.
WHEELS = [MAIN, *(pytest.param(wheel, marks=pytest.mark.long) for wheel in ENDS)]
# Where the runs keep their scratch folders; gone when the tests end.
TEMPORARY = tempfile.TemporaryDirectory(prefix="tests-of-tonnage-")


# Unless a program says otherwise: more threads than cores only wait for each other, and Inductor's pool of compilers is a second import
# of torch. `make long` has both.
ONE_EACH = ("OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")


def pytest_configure(config):
    if not fork_servers.is_fresh():
        for name in ONE_EACH:
            os.environ.setdefault(name, "1")
    long_tests.pytest_configure(config)
    config.addinivalue_line("markers", "fresh: its programs are started by themselves, not forked (../fork_servers.py)")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclasses.dataclass
class Run:
    """What one `tonnage run` left behind."""

    status: int
    report: dict
    stdout: str
    stderr: str
    command: list

    @property
    def verdict(self):
        return self.report["verdict"]

    @property
    def device_bytes(self):
        return self.report["peak"]["device_bytes"]

    def explain(self):
        """The whole story, for the message of a failed assertion."""
        report = json.dumps(self.report, indent=1)[:6000]
        return f"{self.command}\nstatus {self.status}\n{self.stdout[-2000:]}\n{self.stderr[-6000:]}\n{report}"


def python_of(environment):
    folder = ENVIRONMENTS / environment
    if not (folder / "tonnage-stamp").exists():  # half of it may be there
        pytest.skip(f"environment {environment} is missing: tools/envs {environment}")
    return str(folder / "bin/python")


TORCHRUN = ["-m", "torch.distributed.run"]
AT_LAUNCH = ("OMP_NUM_THREADS",)  # what a server of launchers is started with


def run_tonnage(options, program, cwd, env=None, timeout=300, forked=False, imports=(), launches=False, **streams):
    """Runs `tonnage run OPTIONS -- PROGRAM` in `cwd` and reads its report. forked: the program may be forked (fork_servers.py), and
    so may ranks that torchrun starts, which is a script then, and a notebook's kernel. launches: the program starts ranks as torchrun does.
    imports: what a server has imported besides torch."""
    torchrun = list(program[1:3]) == TORCHRUN
    ranks = forked and not fork_servers.is_fresh() and (torchrun or launches)
    if ranks and torchrun:
        program = [program[0], HERE / "programs/ranks/torchrun.py", *program[3:]]
    report = pathlib.Path(cwd) / "tonnage-report.json"
    report.unlink(missing_ok=True)
    command = [str(TONNAGE), "run", "--json", str(report), *options, "--", *map(str, program)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TONNAGE_NEED": "0", "TMPDIR": TEMPORARY.name, **(env or {})}
    done = None
    other = {name: value for name, value in (env or {}).items() if os.environ.get(name) != value}  # than what servers have anyway
    early = [name for name in AT_LAUNCH if ranks and name in other]
    notebook = str(program[0]).endswith(".ipynb")
    words = [options[options.index("--python") + 1], *program] if notebook and "--python" in options else program
    imports = fork_servers.NOTEBOOKS if notebook else (*fork_servers.IMPORTS, *imports)
    plain = set(streams) <= {"input", "stdin"} and fork_servers.knows(options)
    if forked and plain and fork_servers.can_fork(words, other, early):
        done = fork_servers.run_forked(TONNAGE, words[0], options, command, cwd, environment, settings=early, ranks=ranks or notebook,
                                       imports=imports, timeout=timeout, **streams)  # fmt: skip
    if done is None:
        done = subprocess.run(command, cwd=cwd, env=environment, timeout=timeout, capture_output=True, text=True, **streams)
    text = report.read_text() if report.exists() else "{}"
    return Run(done.returncode, json.loads(text), done.stdout, done.stderr, command)


def libraries_of(words):
    """What a server has imported besides torch, where the program, or one that it runs, begins with it: a second of each run."""
    paths = [path for path in map(pathlib.Path, map(str, words)) if path.suffix == ".py" and path.exists()]
    found = re.search(r"(?m)^(?:from|import) (?:transformers|lightning)\b", "\n".join(path.read_text() for path in paths))
    return fork_servers.LIBRARIES if found else ()


@pytest.fixture
def tonnage(request, tmp_path):
    """tonnage(environment, program, *options): the program (a file of this folder, or a list) under `tonnage run`. Where the
    test's file says FORKED and the test is not marked fresh, it may be forked."""
    forked = getattr(request.module, "FORKED", False) and request.node.get_closest_marker("fresh") is None
    if not TONNAGE.exists():
        pytest.fail(f"{TONNAGE} is missing: make build")

    def run(environment, program, *options, cwd=tmp_path, env=None, timeout=300, **streams):
        python = python_of(environment)
        words = [program] if isinstance(program, str) else list(program)
        if words[0].endswith(".py"):
            words[0] = str(HERE / words[0])
        if environment in FORKABLE:
            streams.setdefault("imports", () if environment in ENDS else libraries_of(words))  # few programs of these wheels begin so
        return run_tonnage(options, [python, *words], cwd, env, timeout, forked and environment in FORKABLE, **streams)

    return run


NAMED = 0.98  # of the bytes of live tensors


def check_categories(run):
    """At each moment the categories add up to what the card held, and live tensors have lines of the program."""
    assert run.report["at_peak"] is not None, run.explain()
    for moment, held in moments.moments_of(run.report):
        assert moments.adds_up(moment, held), run.explain()
        named = moments.named_share(moment)
        assert named >= NAMED, f"{named:.4f}\n{run.explain()}"


def memory_option(size):
    """--memory for at least `size` bytes, in whole allocation units of 2 MiB."""
    return f"--memory={-(-int(size) // (2 * MIB)) * 2}MiB"
