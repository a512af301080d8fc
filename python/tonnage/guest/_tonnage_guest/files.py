# SPDX-License-Identifier: Apache-2.0
"""Files that are written past libc, where the write overlay cannot see it (doc/design/0004-no-harm.md), and large ones that
nobody will look at.

safetensors puts a finished file into its place by a direct system call. It gets a name inside the run folder instead,
and the last step is ours, through libc. Nothing is changed when the overlay is off.

In a trial (TONNAGE_TRIAL) what torch.save writes is thrown away with the run, and mostly zeros, since large tensors
leave a virtual card as such: it becomes a file with holes, without check sums. The program can read it all the same.
"""

import functools
import os

from . import imports
from .state import settings

_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)


def install():
    """Called once torch is imported."""
    if not settings.run or os.environ.get("TONNAGE_WRITES") == "allow":
        return
    imports.watch("safetensors", _watch_safetensors)


def attach(core, name):
    """Attaches to torch's writer of archives."""
    if settings.run and os.environ.get("TONNAGE_WRITES") != "allow":
        setattr(core, name, _with_holes(getattr(core, name)))


class _File:
    """A new file that is written from the beginning to the end; pieces of zeros become holes."""

    def __init__(self, name):
        self._file = open(name, "wb", buffering=0)

    def write(self, data):
        view = memoryview(data).cast("B")
        for begin in range(0, len(view), _PIECE):
            piece = bytes(view[begin:begin + _PIECE])
            if piece == _ZEROS:
                self._file.seek(_PIECE, os.SEEK_CUR)
            else:
                self._write_all(piece)
        return len(view)

    def _write_all(self, piece):
        while piece:
            piece = piece[self._file.write(piece):]

    def close(self):
        self._file.truncate()
        self._file.close()


def _with_holes(original):
    class PyTorchFileWriter(original):
        def __init__(self, where, *rest):
            self._own = None
            if settings.trial and isinstance(where, str):
                where = self._own = _File(where)
                rest = (False, *rest[1:]) if rest else rest
            super().__init__(where, *rest)

        def write_end_of_file(self):
            super().write_end_of_file()
            if self._own is not None:
                self._own.close()

    PyTorchFileWriter.__doc__ = original.__doc__
    return PyTorchFileWriter


def _watch_safetensors(module):
    original = getattr(module, "serialize_file", None)
    if original is None:
        return

    @functools.wraps(original)
    def serialize_file(tensor_dict, filename, metadata=None):
        name = os.path.join(settings.run, "scratch/tmp", "safetensors-%d-%s" % (os.getpid(), os.urandom(4).hex()))
        try:
            original(tensor_dict, name, metadata)
            os.replace(name, filename)
        finally:
            if os.path.exists(name):
                os.unlink(name)

    module.serialize_file = serialize_file
