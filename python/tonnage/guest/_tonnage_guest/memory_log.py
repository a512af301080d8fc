# SPDX-License-Identifier: Apache-2.0
"""What only the virtual GPU sees: which bytes a library was handed as a workspace (src/vgpu/core/memory_log.h)."""

import ctypes
import struct

from . import virtual

_MOST = 65536
_NOTE = struct.Struct("=QQQII")  # time, address, bytes, kind, library
_WORKSPACE = 1
_MIB = 1 << 20
_MOST_WANTED = 64
_MOST_HALVES = 8
_TELLING = 10 * _MIB  # the allocator asks for a segment of its own from here on


class _Library:
    """What the virtual GPU has for this."""

    __slots__ = ("read", "clear", "name")

    def __init__(self):
        self.read = self.clear = self.name = None


_library = _Library()


def start():
    """The virtual GPU logs from now on."""
    enable = virtual.function("tn_vgpu_memory_log_enable", None, ctypes.c_int)
    _library.read = virtual.function("tn_vgpu_memory_log_read", ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
    _library.clear = virtual.function("tn_vgpu_memory_log_clear", None)
    _library.name = virtual.function("tn_vgpu_library_name", ctypes.c_char_p, ctypes.c_uint32)
    if enable is None or _library.read is None:
        _library.read = None
        return
    enable(1)


def is_workspace(requested):
    """True where these bytes are asked of the device for a library's workspace: a size that it has told this thread since the last one
    was handed over, rounded as PyTorch's allocator rounds what it asks the device for; or a half, a quarter of one ..., which PyTorch
    tries next as it compares plans of cuDNN (generate_and_filter_plans, aten/src/ATen/native/cudnn/Conv_v8.cpp)."""
    wanted = virtual.function("tn_vgpu_wanted_workspaces", ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
    sizes = (ctypes.c_uint64 * _MOST_WANTED)()
    count = wanted(sizes, _MOST_WANTED) if wanted is not None else 0
    if count and requested == _segment(sizes[0]):
        return True
    return any(requested == _segment(size >> halved) for size in sizes[:count] for halved in range(_MOST_HALVES)
               if size >> halved >= _TELLING)


def _segment(size):
    if size <= _MIB:
        return 2 * _MIB
    return 20 * _MIB if size < 10 * _MIB else -(-size // (2 * _MIB)) * 2 * _MIB


def new_window():
    """Empties the log."""
    if _library.read is not None:
        _library.clear()


def workspaces():
    """(time, library, address, bytes) of every workspace that was handed over."""
    if _library.read is None:
        return []
    buffer = ctypes.create_string_buffer(_MOST * _NOTE.size)
    count = _library.read(buffer, _MOST)
    names = {}
    rows = []
    for time, address, size, kind, library in _NOTE.iter_unpack(buffer.raw[:count * _NOTE.size]):
        if kind == _WORKSPACE:
            if library not in names:
                names[library] = (_library.name(library) or b"?").decode()
            rows.append((time, names[library], address, size))
    return rows
