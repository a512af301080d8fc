# SPDX-License-Identifier: Apache-2.0
"""`tonnage` run from a test, and what it leaves behind."""

import json
import os
import pathlib
import subprocess
import sys
import time

UNDECIDED = 12  # a program that never used a card

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
FAKES = [sys.executable, "-I", "-S", "-X", "tonnage=off"]  # what fake_guest.py and fake_program.py are run with


def alive(mark):
    """Pids of the processes that carry `mark` in their environment, zombies left out."""
    found, wanted = [], mark.encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if wanted in read(f"/proc/{name}/environ") and read(f"/proc/{name}/stat").rpartition(b")")[2].split()[0] != b"Z":
                found.append(int(name))
        except OSError:
            continue
    return found


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return condition()


class Command:
    """`tonnage` with a temporary folder of its own; every process that it starts carries `mark`."""

    def __init__(self, folder):
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.cwd = folder / "cwd"
        self.cwd.mkdir()
        self.mark = "TONNAGE_TEST_MARK=%s" % folder
        name, _, value = self.mark.partition("=")
        self.env = {**os.environ, "TMPDIR": str(self.temporary), name: value, "LC_ALL": "C.UTF-8"}
        for name in ("NO_COLOR", "COLUMNS"):  # of the terminal, or of pytest-xdist
            self.env.pop(name, None)

    def __call__(self, *words, timeout=60, **options):
        command = [str(TONNAGE), *map(str, words)]
        return subprocess.run(command, env=self.env, cwd=self.cwd, timeout=timeout, capture_output=True, text=True,
                              **options)  # fmt: skip

    def start(self, *words, **options):
        command = [str(TONNAGE), *map(str, words)]
        return subprocess.Popen(command, env=self.env, cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **options)  # fmt: skip

    def fake(self, *options, timeout=60, **wish):
        """`tonnage run` of the fake guest; returns the finished command and its report."""
        report = self.cwd / "report.json"
        done = self("run", "--json", report, *options, "--", *fake_words(**wish), timeout=timeout)
        return done, json.loads(report.read_text()) if report.exists() else None

    def left_behind(self):
        return sorted(path.name for path in self.temporary.iterdir())

    def processes(self):
        return alive(self.mark)

    def folder(self):
        """The run folder, once it is there."""
        return wait_until(lambda: next(iter(self.temporary.glob("tonnage-*/ledger")), None)).parent


def fake_words(**wish):
    return [*FAKES, str(HERE / "fake_guest.py"), json.dumps(wish)]
