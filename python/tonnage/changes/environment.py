# SPDX-License-Identifier: Apache-2.0
"""The environment variables that the user's own files read a whole number from: `os.environ.get("BATCH_SIZE", 8)`.

A person sets one in front of the command: `env BATCH_SIZE=4 python train.py`.
"""

import os
import sys

from _tonnage_guest import frames

from . import results
from .option import ENVIRONMENT, Option


def watch(use):
    """use(Option) each time that one is read. os.getenv and all of Mapping come through the two that are watched here."""
    kind = type(os.environ)
    guard = results.Change("environment", None, None)

    def look(name, value, frame):
        number = _whole(value)
        if number is not None and isinstance(name, str) and _reader_is_users(frame):
            use(Option(name, (ENVIRONMENT + name,), None, "int", True, None, number))

    def get(self, key, default=None):
        try:
            value = read(self, key)
        except KeyError:
            value = default
        guard.guarded(look)(key, value, sys._getframe(1))
        return value

    def getitem(self, key):
        value = read(self, key)
        guard.guarded(look)(key, value, sys._getframe(1))
        return value

    read = kind.__getitem__
    kind.get, kind.__getitem__ = get, getitem


def _whole(value):
    """The whole number that a variable or its default says, or None."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None


def _reader_is_users(frame):
    while frame is not None and frame.f_code.co_filename in (os.__file__, "<frozen os>", __file__):
        frame = frame.f_back
    return frame is not None and frames.is_users(frame.f_code.co_filename)
