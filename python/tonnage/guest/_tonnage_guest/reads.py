# SPDX-License-Identifier: Apache-2.0
"""Values that a kernel would have computed, read back: where the program does that.

libtonnage-vgpu.so calls us for each such copy, on the thread that copies; ctypes takes the interpreter lock, so the
library must hold no lock of its own meanwhile.

A checkpoint reads every tensor, and the program sees none of its values: such reads are counted, but have no place.
"""

import os
import sys

from . import frames, guard, virtual
from .state import settings, state

_MAX_SITES = 256
_SAVING = ("/torch/serialization.py", "/safetensors/torch.py")
_library = None
_callback = None  # kept: the library holds its address


def attach():
    """Registers with the virtual GPU, if there is one."""
    global _library, _callback
    _library = virtual.library()
    if _library is None:
        return
    import ctypes

    observe = getattr(_library, "tn_vgpu_set_read_observer", None)
    if observe is None:
        return
    _callback = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(_read)
    observe.argtypes, observe.restype = (ctypes.c_void_p,), None
    observe(ctypes.cast(_callback, ctypes.c_void_p))


def detach():
    """The library calls us no more."""
    if _callback is not None:
        _library.tn_vgpu_set_read_observer(None)


def finish():
    """Asks the virtual GPU for its table of kernels."""
    write = getattr(_library, "tn_vgpu_kernels_write", None)
    if write is None or not settings.run:
        return
    folder = os.path.join(settings.run, "kernels")
    os.makedirs(folder, 0o700, exist_ok=True)
    write(os.path.join(folder, "%d.tsv" % state.pid).encode())


def _saves(frame):
    """True below a call that writes tensors to a file."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(_SAVING):
            return True
        frame = frame.f_back
    return False


def _reader():
    """The frame that reads: our callers' caller. A thread of autograd's or of a library has none; what autograd reads there
    is read for whoever waits for the backward pass. None where nobody does."""
    frame = sys._getframe(0)
    while frame is not None and frames.kind(frame.f_code) is frames.OWN:
        frame = frame.f_back
    return frame if frame is not None else frames.backward_caller()


def _note(_bytes):
    reader = _reader()
    if _saves(reader):
        state.reads_saved += 1
        return
    frame = frames.place(reader)
    if frame is None:
        return
    site = (frames.file_of(frame), frame.f_lineno)
    reads = state.reads
    if site in reads:
        reads[site] += 1
    elif len(reads) < _MAX_SITES:
        reads[site] = 1
    else:
        state.reads_lost += 1


_read = guard.guarded(_note)
