# SPDX-License-Identifier: Apache-2.0
"""What each step put on the virtual GPU's streams, for estimates of its time (doc/design/0012-step-time.md)."""

import ctypes
import os

from . import guard, virtual
from .state import settings, state

_step = None
_write = None


def start():
    """Called when CUDA is initialised."""
    global _step, _write
    _step = virtual.function("tn_vgpu_work_step", None, ctypes.c_uint64)
    _write = virtual.function("tn_vgpu_work_write", ctypes.c_int, ctypes.c_char_p)


@guard.alone
def step_ended(number):
    """What came since the last call was step `number`; 1 begins again."""
    if _step is not None:
        _step(number)


def left_out(to_device, to_host, host):
    """Bytes that a trial does not move but the real program does: over the link either way, and in the host's own
    memory."""
    count = virtual.function("tn_vgpu_work_left_out", None, ctypes.c_double, ctypes.c_double, ctypes.c_double)
    if count is not None:
        count(to_device, to_host, host)


@guard.alone
def finish():
    """Writes <run>/work/<pid>.tsv."""
    if _write is None or not settings.run:
        return
    folder = os.path.join(settings.run, "work")
    os.makedirs(folder, 0o700, exist_ok=True)
    _write(os.path.join(folder, "%d.tsv" % state.pid).encode())
