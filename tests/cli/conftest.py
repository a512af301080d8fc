# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command's tests."""

import compileall
import json
import os
import signal
import sys

import pytest
from command import HERE, ROOT, TONNAGE, Command

sys.path[:0] = [str(ROOT / "tests/page"), str(ROOT / "tests")]  # what holds for every page; programs that are forked

# Run in the background, these tests would hand an ignored Ctrl-C down to every program.
signal.signal(signal.SIGINT, signal.default_int_handler)

for fake in ("fake_guest", "fake_trial"):  # a program under tonnage writes no byte code: each would compile them
    compileall.compile_file(HERE / f"{fake}.py", quiet=2)


@pytest.fixture
def tonnage(tmp_path):
    if not TONNAGE.exists():
        pytest.fail(f"{TONNAGE} is missing: make build")
    command = Command(tmp_path)
    yield command
    for pid in command.processes():
        os.kill(pid, 9)


@pytest.fixture
def schema():
    """schema(name): validates a document against doc/format/<name>.schema.json."""
    jsonschema = pytest.importorskip("jsonschema")

    def validate(name, document):
        text = (ROOT / "doc/format" / f"{name}.schema.json").read_text()
        jsonschema.Draft202012Validator(json.loads(text)).validate(document)

    return validate
