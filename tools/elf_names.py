# SPDX-License-Identifier: Apache-2.0
"""The names that an ELF shared object imports and exports, read from its dynamic symbol table, and its strings.

Purpose: harvest_names.py and coverage.py read hundreds of libraries, some of them gigabytes long; this touches only
the few sections that matter. 64-bit little-endian objects only; anything else gives an empty answer.
"""
import mmap
import re
import struct
from collections import namedtuple

Symbol = namedtuple("Symbol", "name defined is_function version_file")

_SHT_PROGBITS, _SHT_DYNSYM, _SHT_GNU_VERNEED, _SHT_GNU_VERSYM = 1, 11, 0x6FFFFFFE, 0x6FFFFFFF
_STT_FUNC, _STT_GNU_IFUNC = 2, 10
_SHN_ABS = 0xFFF1
_CONSTANTS = (".rodata", ".lrodata", ".data")  # where string literals lie; code for the GPU lies elsewhere


def _sections(data):
    """The section headers as tuples (type, offset, size, link, offset of the name in the names' section)."""
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for index in range(count):
        header = struct.unpack_from("<IIQQQQIIQQ", data, offset + index * size)
        yield header[1], header[4], header[5], header[6], header[0]


def _text(data, at):
    return data[at:data.find(b"\0", at)].decode("utf-8", "replace")


def _version_files(data, need, strings):
    """Maps a version index to the file it is needed from (.gnu.version_r)."""
    files, at = {}, need
    while True:
        _, count, file_name, first, following = struct.unpack_from("<HHIII", data, at)
        auxiliary = at + first
        for _ in range(count):
            _, _, index, _, step = struct.unpack_from("<IHHII", data, auxiliary)
            files[index & 0x7FFF] = _text(data, strings + file_name)
            auxiliary += step
        if not following:
            return files
        at += following


def _read(data):
    if data[:6] != b"\x7fELF\x02\x01":
        return
    sections = list(_sections(data))
    dynsym = next((section for section in sections if section[0] == _SHT_DYNSYM), None)
    if dynsym is None:
        return
    strings = sections[dynsym[3]][1]
    need = next((section[1] for section in sections if section[0] == _SHT_GNU_VERNEED), None)
    versym = next((section[1] for section in sections if section[0] == _SHT_GNU_VERSYM), None)
    files = _version_files(data, need, strings) if need is not None else {}
    table = data[dynsym[1]:dynsym[1] + dynsym[2]]
    for index, (name, info, _, section, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", table)):
        if not name or section == _SHN_ABS:
            continue
        version_file = None
        if files and not section and versym is not None:
            number, = struct.unpack_from("<H", data, versym + 2 * index)
            version_file = files.get(number & 0x7FFF)
        yield Symbol(_text(data, strings + name), section != 0, info & 15 in (_STT_FUNC, _STT_GNU_IFUNC), version_file)


def _constants(data):
    """The bytes of the sections that hold string literals."""
    if data[:6] != b"\x7fELF\x02\x01":
        return
    sections = list(_sections(data))
    names_index, = struct.unpack_from("<H", data, 62)
    names = sections[names_index][1]
    for kind, offset, size, _, name in sections:
        if kind == _SHT_PROGBITS and _text(data, names + name).startswith(_CONSTANTS):
            yield data[offset:offset + size]


def _with_file(path, reader):
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return list(reader(data))
    except (OSError, ValueError, struct.error, IndexError):
        return []


def symbols(path):
    """All dynamic symbols of the object at `path`; an empty list when it is not a 64-bit ELF object."""
    return _with_file(path, _read)


def strings(path, pattern):
    """The string literals of the object at `path` that match `pattern` (bytes, without anchors) from end to end."""
    whole = re.compile(rb"\0(" + pattern + rb")(?=\0)")  # begins with a byte that is looked for: a quarter of the time
    found = set()
    for section in _with_file(path, _constants):
        found.update(match.decode() for match in whole.findall(b"\0" + section))
    return found
