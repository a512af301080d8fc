# SPDX-License-Identifier: Apache-2.0
"""Writes guest/<pid>.json, what this process learnt (document.py), replaced atomically (doc/design/0002-run-protocol.md).

The functions of os are taken at import time, so that a program that replaces them (mock file systems) does not meet us.
"""

import _thread
import json
import os
import time

from . import guard
from .state import settings, state

_EVERY = 0.5  # seconds between writes that nothing important asks for
_open, _write, _close, _replace, _makedirs = os.open, os.write, os.close, os.replace, os.makedirs


class _Writer:
    """When the file was written last, and by what its contents are made."""

    __slots__ = ("last", "make")

    def __init__(self):
        self.last = 0.0
        self.make = dict


_writer = _Writer()


def start(make):
    """make() -> the document, from now on."""
    _writer.make = make


def write_now():
    """Writes the file at once."""
    if not settings.run:
        return
    _writer.last = time.monotonic()
    write_file(os.path.join(settings.run, "guest"), "%d.json" % state.pid, json.dumps(_writer.make(), default=_left_out).encode())


def _left_out(value):
    """What JSON does not know: a mistake of a sensor, which takes nothing else with it."""
    guard.lose("record", TypeError("%s in the document" % type(value).__name__))


def write_sometimes():
    """Writes the file unless that was done less than half a second ago."""
    if time.monotonic() - _writer.last >= _EVERY:
        write_now()


@guard.guarded
def step_ended(step):
    """Writes it at a new peak, else now and then."""
    if step.grew:
        write_now()
    else:
        write_sometimes()


def write_file(folder, name, data):
    """Puts `data` into folder/name by way of a temporary name, so that no reader sees half of it."""
    path = os.path.join(folder, name)
    part = "%s.%d.part" % (path, _thread.get_ident())  # threads may write at once: the last one whole counts
    try:
        handle = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        _makedirs(folder, 0o700, exist_ok=True)
        handle = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[_write(handle, view):]
    finally:
        _close(handle)
    _replace(part, path)
