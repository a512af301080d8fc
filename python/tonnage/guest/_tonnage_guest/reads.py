# SPDX-License-Identifier: Apache-2.0
"""Values that a kernel would have computed, read back: where the program does that, and what they were taken to be.

libtonnage-vgpu.so calls us for each such copy, on the thread that copies; ctypes takes the interpreter lock, so the
library must hold no lock of its own meanwhile. It offers three values (src/vgpu/core/likely.h), the likely one first; we
choose another at a line that the supervisor names (a run made again), and at one that is read again and again while
nothing else goes on: a loop that waits for another value.

A checkpoint reads every tensor, and the program sees none of its values: such reads are counted, but have no place. What is read to
print a tensor is no assumption: how many of its numbers are finite sizes its text, and nothing else.
"""

import ctypes
import json
import os
import sys

from . import frames, guard, methods, peaks, virtual
from .state import settings, state

_MAX_SITES = 256
_SAVING = ("/torch/serialization.py", "/safetensors/torch.py")
_PRINTING = "/torch/_tensor_str.py"
_ENDLESS = 2000  # reads of a line without a step, a batch or a pass, after which it gets another value
_NONE, _TRUTH, _REAL, _WHOLE, _INDEX, _COUNT, _SELECTED = range(7)  # enum tn_likely_kind
_WHAT = {_TRUTH: "truth", _REAL: "number", _WHOLE: "whole number", _INDEX: "index", _COUNT: "count",
         _SELECTED: "whole number", _NONE: "zeros"}  # fmt: skip
# Of torch's types: enum tn_dtype.
_ELEMENTS = {"uint8": 1, "int8": 2, "bool": 3, "int16": 4, "int32": 5, "int64": 6, "float16": 7, "bfloat16": 8,
             "float32": 9, "float64": 10}  # fmt: skip
_READERS = ("item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__")
_elements = {}
_plain = set()  # types of tensors whose storage is their own
_wished = {}  # ((file, line), what) -> choice


class _Library:
    """The virtual GPU, and its functions for this."""

    __slots__ = ("handle", "callback", "say")

    def __init__(self):
        self.handle = None
        self.callback = None  # ours; kept: the library holds its address
        self.say = None


_library = _Library()


class _Read(ctypes.Structure):
    """struct tn_value_read of likely.h."""

    _fields_ = (("bytes", ctypes.c_uint64), ("bound", ctypes.c_uint64), ("offered", ctypes.c_double * 3),
                ("kind", ctypes.c_int32), ("choice", ctypes.c_int32))  # fmt: skip


def attach():
    """Registers with the virtual GPU, if there is one."""
    _library.handle = virtual.library()
    observe = getattr(_library.handle, "tn_vgpu_set_read_observer", None)
    if observe is None:
        return
    _wished.update(_read_wishes())
    _library.callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Read))(_read)
    observe.argtypes, observe.restype = (ctypes.c_void_p,), None
    observe(ctypes.cast(_library.callback, ctypes.c_void_p))
    _library.say = virtual.function("tn_vgpu_reading", None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)
    if _library.say is not None:
        torch = state.torch
        _plain.update((torch.Tensor, torch.nn.Parameter))
        _elements.update((getattr(torch, name), number) for name, number in _ELEMENTS.items())
        for name in _READERS:
            methods.notice(torch.Tensor, name, _tell)


def _tell(tensor):
    """The virtual GPU knows of what type the bytes at the tensor's address are. No frame of ours stands in a traceback."""
    if tensor.is_cuda and type(tensor) in _plain:
        try:
            _library.say(_elements.get(tensor.dtype, 0), tensor.data_ptr(), tensor.numel())
        except Exception:
            pass  # one without storage


def _read_wishes():
    """What the supervisor wants at which line: TONNAGE_ASSUMPTIONS, a file."""
    try:
        with open(settings.assumptions) as file:
            rows = json.load(file)
        return {((row["file"], row["line"]), row["what"]): int(row["choice"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def detach():
    """The library calls us no more."""
    if _library.callback is not None:
        _library.handle.tn_vgpu_set_read_observer(None)


def finish():
    """Asks the virtual GPU for its table of kernels."""
    write = getattr(_library.handle, "tn_vgpu_kernels_write", None)
    if write is None or not settings.run:
        return
    folder = os.path.join(settings.run, "kernels")
    os.makedirs(folder, 0o700, exist_ok=True)
    write(os.path.join(folder, "%d.tsv" % state.pid).encode())


def _only_for(frame):
    """_SAVING below a call that writes tensors to a file, _PRINTING below one that makes text of a tensor; else None."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith(_SAVING):
            return _SAVING
        if name.endswith(_PRINTING):
            return _PRINTING
        frame = frame.f_back
    return None


def _reader():
    """The frame that reads: our callers' caller. A thread of autograd's or of a library has none; what autograd reads there
    is read for whoever waits for the backward pass. None where nobody does."""
    frame = sys._getframe(0)
    while frame is not None and frames.kind(frame.f_code) is frames.OWN:
        frame = frame.f_back
    return frame if frame is not None else frames.backward_caller()


def _peak():
    """The worst device's peaks so far."""
    peaks.read()
    return peaks.highest()


class Assumption:
    """What was read at one line."""

    __slots__ = ("kind", "values", "bound", "reads", "waits", "progress", "choice", "order", "peak")

    def __init__(self, kind):
        self.kind = kind
        self.peak = _peak() if kind == _COUNT else None  # before the first read
        self.values = []  # in the order in which they were first given, a few
        self.bound = 0  # of a count: the largest
        self.reads = self.waits = self.choice = self.order = 0
        self.progress = None

    def choose(self, wished, progress, settled):
        """Which of the offered values it gets now; a `settled` one is never exchanged for waiting."""
        self.waits = self.waits + 1 if progress == self.progress else 1
        self.progress = progress
        turns = 0 if settled else (self.waits - 1) // _ENDLESS
        self.choice = (wished + turns) % (2 if self.kind == _TRUTH else 3)
        return self.choice


def _note(pointer):
    read = pointer.contents
    reader = _reader()
    purpose = _only_for(reader)
    if purpose is _SAVING:
        state.reads_saved += 1
        return
    frame = frames.place(reader)
    if frame is None:
        return
    state.read_count += 1
    site = frames.site(frame)
    if site in state.read_sites or len(state.read_sites) < _MAX_SITES:
        state.read_sites[site] = state.read_sites.get(site, 0) + 1
    else:
        state.reads_lost += 1
    if purpose is not _PRINTING:
        _assume(read, _asker(reader))


def _asker(frame):
    """Where the value is asked for, also inside an installed library: one line of the program may ask for many."""
    while frame is not None and frames.kind(frame.f_code, frame.f_globals) in (frames.SYSTEM, frames.OWN):
        frame = frame.f_back
    return frame


def _assume(read, frame):
    """Chooses the value, and notes it."""
    site = frames.site(frame)
    what = _WHAT.get(read.kind, "zeros")
    found = state.reads.get((site, what))
    if found is None:
        if len(state.reads) >= _MAX_SITES:
            return
        found = state.reads[site, what] = Assumption(read.kind)
    found.order = state.read_count
    found.reads += 1
    full = read.kind == _COUNT and read.offered[0] == read.bound
    read.choice = found.choose(_wished.get((site, what), 0), (state.steps, state.passes), full or read.kind == _INDEX)
    value = read.offered[read.choice]
    if read.kind == _COUNT:  # of counts the largest is told
        if read.bound < found.bound:
            return
        found.values = [value] if read.bound > found.bound else found.values
        found.bound = read.bound
    if value not in found.values and len(found.values) < 8:
        found.values.append(value)


def _word(kind, value, bound):
    """One value for a person."""
    if kind == _TRUTH:
        return "true" if value else "false"
    if kind == _COUNT:
        return "%d of %d" % (value, bound)
    return "%d" % value if value == int(value) else "%g" % value


def _words(found):
    return ", then ".join(_word(found.kind, value, found.bound) for value in found.values[:4])


def document():
    """For the guest's JSON: what was taken to be what, the line that was read last first."""
    rows = sorted(state.reads.items(), key=lambda row: -row[1].order)
    peak = peaks.highest()
    return [
        {"file": file, "line": line, "what": what, "value": _words(found), "bound": found.bound,
         "reads": found.reads, "choice": found.choice, "endless": found.waits > 4 * _ENDLESS,
         "after_peak": found.peak == peak}
        for ((file, line), what), found in rows
    ]  # fmt: skip


def counts():
    """How often each line of the program read, the most first."""
    return sorted(state.read_sites.items(), key=lambda row: -row[1])


_read = guard.guarded(_note)
