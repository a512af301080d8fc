# SPDX-License-Identifier: Apache-2.0
"""What only the virtual GPU sees: which bytes a library was handed as a workspace (src/vgpu/core/memory_log.h)."""

import ctypes
import struct

from . import virtual

_MOST = 65536
_NOTE = struct.Struct("=QQQII")  # time, address, bytes, kind, library
_WORKSPACE = 1
_MIB = 1 << 20


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


def workspace_wanted(requested):
    """The library ("cudnn") for whose workspace these bytes of the device are asked, or None: the size that it wanted
    last, rounded as PyTorch's allocator rounds what it asks the device for."""
    last = virtual.function("tn_vgpu_last_workspace", ctypes.c_uint64)
    library = virtual.function("tn_vgpu_last_workspace_library", ctypes.c_uint32)
    wanted = last() if last is not None and library is not None else 0
    if not wanted or requested != _segment(wanted):
        return None
    name = virtual.function("tn_vgpu_library_name", ctypes.c_char_p, ctypes.c_uint32)
    return (name(library()) or b"?").decode()


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
