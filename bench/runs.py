# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches that run other people's programs: which build it is, one command with all that it starts."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time
import uuid

from places import ENVIRONMENTS, ROOT

SOURCES = ["cli", "include", "python", "src"]
MARK = "TONNAGE_BENCH_MARK"


def build_key():
    """What the sources of Tonnage are: the committed trees, and what was changed since."""
    done = subprocess.run(["git", "rev-parse", *(f"HEAD:{tree}" for tree in SOURCES)], cwd=ROOT, capture_output=True)
    changed = subprocess.run(["git", "diff", "HEAD", "--", *SOURCES], cwd=ROOT, capture_output=True)
    return hashlib.sha256(done.stdout + changed.stdout).hexdigest()[:16]


def commit():
    """The last commit that changed the sources, which outlives a rebase of what stands above it."""
    words = ["git", "log", "-1", "--format=%h", "--abbrev=10", "--", *SOURCES]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def python_of(environment):
    return ENVIRONMENTS / environment / "bin/python"


def versions(environment, packages):
    code = "import importlib.metadata as m, sys; print('\\n'.join(m.version(n) for n in sys.argv[1:]))"
    done = subprocess.run([python_of(environment), "-c", code, *packages], capture_output=True, text=True, check=True)
    return dict(zip(packages, done.stdout.split()))


def marked(mark):
    """The processes that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
            except OSError:
                pass


def end_all(mark):
    """Ends whatever carries the mark. Returns how many were left."""
    left = list(marked(mark))
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in marked(mark):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        for _ in range(30):
            if not any(True for _ in marked(mark)):
                return len(left)
            time.sleep(0.1)
    return len(left)


def new_mark():
    return uuid.uuid4().hex


def start(words, folder, environment, seconds, log):
    """Runs a command in a folder; (status, or None where its time was up, seconds, what it printed, processes left behind).
    Its environment carries a mark (MARK), by which whatever it leaves behind is found and ended."""
    began = time.monotonic()
    with open(log, "w+", errors="replace") as file:
        process = subprocess.Popen(list(map(str, words)), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=file, start_new_session=True)  # fmt: skip
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        taken = time.monotonic() - began
        left = end_all(environment[MARK])
        process.wait()
        file.seek(0)
        return status, taken, file.read(), left


def document_at(path):
    """A report, or {} where none was written."""
    return json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}
