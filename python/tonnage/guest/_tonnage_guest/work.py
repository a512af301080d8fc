# SPDX-License-Identifier: Apache-2.0
"""What each step put on the virtual GPU's streams, for estimates of its time (doc/design/0012-step-time.md)."""

import ctypes
import os

from . import guard, virtual
from .state import settings, state


class _Library:
    """What the virtual GPU has for this."""

    __slots__ = ("step", "write")

    def __init__(self):
        self.step = self.write = None


_library = _Library()


def start():
    """Called when CUDA is initialised."""
    _library.step = virtual.function("tn_vgpu_work_step", None, ctypes.c_uint64)
    _library.write = virtual.function("tn_vgpu_work_write", ctypes.c_int, ctypes.c_char_p)


@guard.guarded
def step_ended(step):
    """What came since the last call was this step; step 1 begins again."""
    if _library.step is not None:
        _library.step(step.number)


def left_out(to_device, to_host, host):
    """Bytes that a trial does not move but the real program does: over the link either way, and in the host's own
    memory."""
    count = virtual.function("tn_vgpu_work_left_out", None, ctypes.c_double, ctypes.c_double, ctypes.c_double)
    if count is not None:
        count(to_device, to_host, host)


@guard.alone
def finish():
    """Writes <run>/work/<pid>.tsv."""
    if _library.write is None or not settings.run:
        return
    folder = os.path.join(settings.run, "work")
    os.makedirs(folder, 0o700, exist_ok=True)
    _library.write(os.path.join(folder, "%d.tsv" % state.pid).encode())
