# SPDX-License-Identifier: Apache-2.0
"""Which pages of a tensor's memory were ever touched.

A page of private anonymous memory that is not resident and not swapped out reads zero. mincore tells residence; where
the process has pages in swap, every page counts as touched. Only for memory of PyTorch's own CPU allocator, which is
anonymous (init.py sees to that).
"""

import ctypes
import functools
import mmap

_PAGE = mmap.PAGESIZE
_PIECE = 1 << 20
_RESIDENT = bytes(byte & 1 for byte in range(256))  # translation table: only the lowest bit of mincore's answer counts


@functools.lru_cache(maxsize=None)
def _libc():
    library = ctypes.CDLL(None, use_errno=True)
    library.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    library.mincore.restype = ctypes.c_int
    library.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    library.memcmp.restype = ctypes.c_int
    return library


def touched(address, size):
    """Ranges [(start, end)] of bytes from `address` that may hold something other than zero, in order; pages that the
    memory shares with its neighbours count as touched. None when that cannot be told."""
    end = address + size
    first, last = -(-address // _PAGE) * _PAGE, end // _PAGE * _PAGE
    if last <= first or _has_swapped():
        return None
    answer = ctypes.create_string_buffer((last - first) // _PAGE)
    if _libc().mincore(first, last - first, answer) != 0:
        return None
    ranges = [(0, first - address)] if first > address else []
    for start, stop in _runs(answer.raw[:(last - first) // _PAGE].translate(_RESIDENT)):
        ranges.append((first - address + start * _PAGE, first - address + stop * _PAGE))
    if end > last:
        ranges.append((last - address, size))
    return _joined(ranges)


def not_zero(address, ranges):
    """The parts of ranges that hold something other than zero. What was only read is resident, too: of a page that nobody
    wrote to the kernel shows its page of zeros."""
    return _joined((start, stop) for first, last in ranges for start, stop in _pieces(first, last)
                   if not _is_zero(address + start, stop - start))


def _pieces(first, last):
    for start in range(first, last, _PIECE):
        yield start, min(start + _PIECE, last)


def _is_zero(address, size):
    # Equal to itself moved by one, and the first byte is zero.
    return ctypes.string_at(address, 1) == b"\0" and _libc().memcmp(address, address + 1, size - 1) == 0


def total(ranges):
    """Bytes in ranges."""
    return sum(stop - start for start, stop in ranges)


def _runs(bits):
    """Runs of ones, as (start, stop)."""
    at = bits.find(1)
    while at >= 0:
        stop = bits.find(0, at)
        stop = len(bits) if stop < 0 else stop
        yield at, stop
        at = bits.find(1, stop)


def _joined(ranges):
    result = []
    for start, stop in ranges:
        if result and result[-1][1] >= start:
            result[-1] = (result[-1][0], stop)
        else:
            result.append((start, stop))
    return result


def _has_swapped():
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmSwap:"):
                    return int(line.split()[1]) > 0
    except (OSError, ValueError, IndexError):
        return True
    return False
