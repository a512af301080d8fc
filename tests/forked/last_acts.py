# SPDX-License-Identifier: Apache-2.0
"""In a fork server of the tests (../fork_servers.py): what Python does last of all is left out of the processes that are forked from it.

When no program runs any more and its files are flushed, Python touches each interned string and each type, so all pages of the server's
with such are copied: 16 of the 65 ms that a process costs which does nothing. `make long` starts every program by itself.
"""

import ctypes
import mmap
import platform
import struct

_LAST = (b"_PyUnicode_ClearInterned", b"_PyTypes_Fini", b"_Py_Deepfreeze_Fini")
_RETURN = {"x86_64": b"\xc3", "aarch64": b"\xc0\x03\x5f\xd6"}


def leave_out():
    """In a fork server: these functions of the interpreter return at once, where its symbols tell where they are."""
    code = _RETURN.get(platform.machine())
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    for address in _addresses(_LAST) if code else ():
        page = address & -mmap.PAGESIZE
        size = address + len(code) - page
        if protect(page, size, executable | mmap.PROT_WRITE) == 0:
            ctypes.memmove(address, code, len(code))
            protect(page, size, executable)


def _addresses(names):
    """Of functions of the interpreter, whether they are exported or not."""
    path, base = _interpreter()
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    moved = base if struct.unpack_from("<H", data, 16)[0] == 3 else 0  # ET_DYN
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + number * size) for number in range(count)]
    found = []
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        text = sections[section[6]]
        wanted = {data.find(b"\0" + name + b"\0", text[4], text[4] + text[5]) + 1 - text[4] for name in names}
        symbols = struct.iter_unpack("<IBBHQQ", data[section[4]:section[4] + section[5]])
        found += [moved + symbol[4] for symbol in symbols if symbol[0] in wanted and symbol[1] & 15 == 2]  # STT_FUNC
    return found


def _interpreter():
    """(path, where it begins) of what the interpreter was mapped from."""
    place = ctypes.cast(ctypes.pythonapi.Py_Initialize, ctypes.c_void_p).value
    begins = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            path = line.split(maxsplit=5)[5].rstrip("\n") if line.count("/") else ""
            begins.setdefault(path, first)
            if first <= place < last:
                return path, begins[path]
    raise RuntimeError("the interpreter is mapped nowhere")
