# SPDX-License-Identifier: Apache-2.0
"""Calls of the program that say more about its memory than the allocator sees: zeroing of gradients, emptying of the cache,
deleted modules (as metadata of a snapshot), pinned tensors and warnings of torch's own (in guest/<pid>.json).

Methods are noted as they are looked up, and the program gets torch's own; functions
are wrapped at torch._C, where torch's Python code looks them up at each call.
"""

import os
import sys
import warnings

from . import frames, guard, metadata, methods
from .state import state

_MOST_PLACES = 256
_PIECE = 4096  # smallest pinned block
_OF_LOADERS = "torch/utils/data/_utils/pin_memory.py"
_FUNCTIONS = {"_cuda_emptyCache": "empty_cache", "_cuda_setMemoryFraction": "memory_fraction"}
# What torch warns of, and how it is called in guest/<pid>.json.
_WARNINGS = (
    ("To copy construct from a tensor", "tensor_of_a_tensor"),
    ("memory_cached", "memory_cached"),
)


def install():
    """Called once torch is imported: its warnings go by Python's own function."""
    _watch_warnings()


def watch_zero_grad(cls, name):
    """Attaches to a method that is noted as it is looked up."""
    methods.put(cls, name, guard.guarded(_zeroes), None)


def watch_pinning(cls, name):
    """Attaches to a method that is noted as it is looked up."""
    methods.put(cls, name, guard.guarded(_pins), None)


def watch_function(core, name):
    """Attaches to a function of torch._C."""
    original, note = getattr(core, name), guard.guarded(lambda: _mark(_FUNCTIONS[name]))

    def wrapped(*args):
        note()
        return original(*args)

    wrapped.__name__ = name
    setattr(core, name, wrapped)


def note_deletion():
    """A module that owned parameters has gone."""
    if state.cuda_initialized and not sys.is_finalizing():
        _mark("deleted", repeat=False)


def document():
    """[{"what", "file", "line", "function", "count", "bytes"}] for guest/<pid>.json."""
    return [
        {"what": what, "file": file, "line": line, "function": function, "count": count, "requested_bytes": size}
        for (what, file, line, function), (count, size) in state.usage.items()
    ]


def _mark(name, repeat=True):
    """A mark of this call; unless `repeat`, only when the last one of its name was elsewhere."""
    frame = frames.place(frames.caller()) if state.cuda_initialized else None
    if frame is None:
        return
    place = frames.describe(frame)
    row = (metadata.now(), name, place["file"], place["line"], place["function"])
    before = next((old for old in reversed(metadata.calls) if old[1] == name), None)
    if repeat or before is None or before[2:] != row[2:]:
        metadata.calls.append(row)


def _count(what, place, size):
    key = (what, place["file"], place["line"], place["function"])
    if key in state.usage or len(state.usage) < _MOST_PLACES:
        entry = state.usage.setdefault(key, [0, 0])
        entry[0] += 1
        entry[1] += size


def _zeroes(owner):
    _mark("zero_grad")


def _pins(tensor):
    """torch's allocator of pinned memory rounds up to powers of two. What a DataLoader pins is not told: it is given back
    and used again, batch by batch."""
    caller = frames.caller()
    while caller is not None and frames.kind(caller.f_code) is frames.OWN:
        caller = caller.f_back
    if caller is None or caller.f_code.co_filename.replace(os.sep, "/").endswith(_OF_LOADERS):
        return
    frame = frames.place(caller)
    if frame is not None and frames.is_users(frame.f_code.co_filename) and not tensor.is_cuda and tensor.nbytes:
        _count("pin_memory", frames.describe(frame), max(_PIECE, 1 << (tensor.nbytes - 1).bit_length()))


def _watch_warnings():
    """Python, and torch's C++ code, look this function up at each warning that is to be shown."""
    show = getattr(warnings, "_showwarnmsg", None)
    if show is None:
        return

    def _showwarnmsg(message):
        note(message)
        return show(message)

    note = guard.guarded(_warned)
    warnings._showwarnmsg = _showwarnmsg


def _warned(message):
    text = str(message.message)
    for words, what in _WARNINGS:
        frame = frames.place(frames.caller()) if words in text and "torch" in text else None
        if frame is not None:
            _count(what, frames.describe(frame), 0)
            return
