# SPDX-License-Identifier: Apache-2.0
"""Tables of `datasets` whose values are not there (`--data shape`, doc/design/0042-data.md).

An Arrow file says how long everything in it is before it says what it is. Where the file has holes, what lies in one is made: text of the
length that is known, ones for numbers. Rows behind what the file tells repeat those that it does tell. A file that is missing, or tells no
row, is made from dataset_info.json beside it: features, rows, bytes. What is there is read as it is, and files that are whole are
not touched.

Values of one kind are one piece of memory that is mapped again and again, so that a table of 100 GB takes none of the computer's.
"""

import ctypes
import functools
import json
import mmap
import os

from . import data_notes, guard
from .state import state

_ROWS = 10000  # of a table of which nobody knows how many it has
_TEXT = b"this is text that stands in for a line that is not there to be. "  # 64 bytes
_MESSAGES = 32  # of a chat, and texts of a list, at most
_CHARACTERS = 256  # of a text, numbers of a list: where nothing tells how long they are
_PIECE = 16 << 20  # mapped again and again; a multiple of every pattern's length
_NORESERVE, _FIXED = 0x4000, 0x10  # of mmap; Python names neither everywhere
_MOST = 1 << 30  # bytes of a column of made values: offsets have 31 bits. More rows are the same ones again
_SMALL = 1 << 20  # bytes that are simply made
_SPEAKERS = {"role": ("user", "assistant"), "from": ("human", "gpt")}  # templates of chats refuse others


# ---- where `datasets` opens files ----


@guard.alone
def watch_files(module):
    """The size of a data set is asked before its files are opened."""
    original = module.estimate_dataset_size

    @functools.wraps(original)
    def estimate_dataset_size(paths):
        return original(path for path in paths if os.path.exists(path))

    module.estimate_dataset_size = estimate_dataset_size


@guard.alone
def watch_tables(module):
    """All tables, also those that a worker is sent by name, come through these."""
    _replace(module, "_in_memory_arrow_table_from_file", lambda table: table)
    _replace(module, "_memory_mapped_record_batch_reader_from_file", lambda table: table.to_reader())
    _replace(module, "read_schema_from_file", lambda table: table.schema)


def _replace(module, name, wanted):
    original = getattr(module, name)

    @functools.wraps(original)
    def opened(filename):
        table = _made(filename)
        return original(filename) if table is None else wanted(table)

    setattr(module, name, opened)


def _made(filename):
    """The table that stands in for a file; None where the file is whole."""
    if "made_data" in state.lost:
        return None
    try:
        made = _Made(os.path.abspath(os.fsdecode(filename)))
        if made.is_whole():
            return None
        table = made.table()
        if table is not None:
            data_notes.note("data_set", made.bytes, table.num_rows, ",".join(sorted(made.assumed)), made.path)
        return table
    except Exception as error:
        guard.lose("made_data", error)
        return None


class _Made:
    """A file and what is known of it."""

    def __init__(self, path):
        self.path = path
        self.size = os.stat(path).st_size if os.path.exists(path) else 0
        self.there = _pieces_there(path) if self.size else []
        self.bytes = 0  # that were made
        self.assumed = set()  # "rows", "lengths"

    def is_whole(self):
        """A cut file has no hole; its end says so."""
        return self.size > 0 and not self._has_holes() and _ends(self.path, self.size)

    def _has_holes(self):
        return self.there != [(0, self.size)]

    def table(self):
        """None where neither the file nor its neighbours tell what is in it."""
        import pyarrow as pa

        schema, batches = self._known(pa)
        told = _Told(self.path)
        schema = schema or told.schema()
        if schema is None:
            return None
        known = sum(batch.num_rows for batch in batches)
        rows, bytes_ = told.rows_and_bytes(self._length_of)
        if known and self.complete:
            rows = known
        elif rows is None and known:
            rows = max(known, known * self.size // max(self.reached, 1))
            self.assumed.add("rows")
        elif rows is None:
            rows = _ROWS
            self.assumed.add("rows")
        table = pa.Table.from_batches(batches, schema)
        if rows <= known:
            return table
        self.assumed.add("lengths")
        if not known:
            lengths = _Lengths(pa, schema, rows, bytes_ or (self.size if self._has_holes() else 0))
            part = min(rows, max(_MOST // (lengths.each or _CHARACTERS), 1))
            arrays = [self._new(pa, field.type, part, lengths, field.name) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
        self.bytes += table.nbytes * rows // table.num_rows - (table.nbytes if known else 0)
        return pa.concat_tables([table] * -(-rows // table.num_rows)).slice(0, rows)

    def _length_of(self, path):
        """Rows of another file of the same data set, 0 where it is not there."""
        import pyarrow as pa

        other = _Made(path)
        return sum(batch.num_rows for batch in other._known(pa)[1]) if other.size else 0

    # ---- what the file tells ----

    def _known(self, pa):
        """The schema and the batches that the file tells of, values in holes made. None, [] without either."""
        self.reached, self.complete = 0, False
        if not self.size:
            return None, []
        with pa.memory_map(self.path) as file:
            data = file.read_buffer(self.size)
        stream = pa.BufferReader(data)
        batches, schema = [], None
        try:
            schema = pa.ipc.read_schema(stream)
            while True:
                self.reached = stream.tell()
                if self._is_hole(self.reached, 8) or self.size - self.reached < 8:
                    break
                if bytes(data[self.reached : self.reached + 8]) == b"\xff\xff\xff\xff\0\0\0\0":
                    self.complete = True
                    break
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(stream), schema)
                batches.append(self._filled(pa, batch, data))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, EOFError):
            pass  # the file tells no more
        return schema, batches

    def _is_hole(self, offset, size):
        """True where a part of these bytes is not there."""
        if size <= 0:
            return False
        return not any(begin <= offset and offset + size <= end for begin, end in self.there)

    def _filled(self, pa, batch, data):
        arrays = [self._fill(pa, column, data.address, batch.schema.field(at).name) for at, column in enumerate(batch.columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _absent(self, buffer, base):
        if buffer is None or not base <= buffer.address < base + self.size:
            return False
        absent = self._is_hole(buffer.address - base, buffer.size)
        self.bytes += buffer.size if absent else 0
        return absent

    def _fill(self, pa, array, base, name):
        """The same array, what lies in holes made."""
        kind, count, types = array.type, len(array), pa.types
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(kind, self._fill(pa, array.storage, base, name))
        buffers = array.buffers()
        valid = buffers[0] if buffers and buffers[0] is not None and not self._absent(buffers[0], base) else None
        nulls = array.null_count if valid is not None else 0
        if types.is_struct(kind):
            children = [self._fill(pa, array.field(at), base, kind.field(at).name) for at in range(kind.num_fields)]
            return pa.Array.from_buffers(kind, count, [valid], nulls, children=children)
        if types.is_fixed_size_list(kind):
            return pa.Array.from_buffers(kind, count, [valid], nulls, children=[self._fill(pa, array.values, base, name)])
        if types.is_list(kind) or types.is_large_list(kind):
            values = self._fill(pa, array.values, base, kind.value_field.name if name not in _SPEAKERS else name)
            offsets = buffers[1]
            if self._absent(offsets, base):
                self.assumed.add("lengths")
                offsets = _even(pa, count, len(values), types.is_large_list(kind))
            return pa.Array.from_buffers(kind, count, [valid, offsets], nulls, children=[values])
        if _is_text(pa, kind) or _is_bytes(pa, kind):
            return self._fill_text(pa, array, buffers, valid, nulls, base, name)
        if len(buffers) == 2 and types.is_primitive(kind) and self._absent(buffers[1], base):
            ones = _ones(pa, kind, count)
            return pa.Array.from_buffers(kind, count, [valid, ones if ones is not None else buffers[1]], nulls)
        return array if valid is buffers[0] else pa.Array.from_buffers(kind, count, [valid, *buffers[1:]], nulls)

    def _fill_text(self, pa, array, buffers, valid, nulls, base, name):
        kind, count, (_, offsets, values) = array.type, len(array), buffers
        size = values.size if values is not None else 0
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        if self._absent(offsets, base):
            self.assumed.add("lengths")
            offsets = _even(pa, count, size, large)
        if self._absent(values, base):
            if name in _SPEAKERS and _is_text(pa, kind):
                return _speakers(pa, kind, count, name)
            if _is_text(pa, kind):
                values = _repeated(pa, _TEXT, size)  # bytes stay what they read as: nothing
        return pa.Array.from_buffers(kind, count, [valid, offsets, values], nulls)

    # ---- what it does not ----

    def _new(self, pa, kind, count, lengths, name):
        """An array of `count` made values."""
        types = pa.types
        if isinstance(kind, pa.BaseExtensionType):
            shape = list(getattr(kind, "shape", ()) or ())
            return pa.ExtensionArray.from_storage(kind, self._new(pa, kind.storage_type, count, lengths.shaped(shape), name))
        if types.is_struct(kind):
            names = [kind.field(at).name for at in range(kind.num_fields)]
            if set(names) == {"bytes", "path"}:  # an image or a recording: by its bytes, not by a file
                children = [pa.nulls(count, kind.field(at).type) if names[at] == "path" else
                            self._new(pa, kind.field(at).type, count, lengths, "bytes") for at in range(2)]  # fmt: skip
            else:
                children = [self._new(pa, kind.field(at).type, count, lengths, names[at]) for at in range(len(names))]
            return pa.StructArray.from_arrays(children, fields=[kind.field(at) for at in range(len(names))])
        if types.is_fixed_size_list(kind):
            values = self._new(pa, kind.value_type, count * kind.list_size, lengths.inside(kind.list_size), name)
            return pa.Array.from_buffers(kind, count, [None], 0, children=[values])
        if types.is_list(kind) or types.is_large_list(kind):
            each = lengths.of_list(kind.value_type)
            values = self._new(pa, kind.value_type, count * each, lengths.inside(each), kind.value_field.name)
            offsets = _even(pa, count, count * each, types.is_large_list(kind))
            return pa.Array.from_buffers(kind, count, [None, offsets], 0, children=[values])
        if _is_text(pa, kind) or _is_bytes(pa, kind):
            if name in _SPEAKERS and _is_text(pa, kind):
                return _speakers(pa, kind, count, name)
            size = count * lengths.of_text()
            large = types.is_large_string(kind) or types.is_large_binary(kind)
            values = _repeated(pa, _TEXT if _is_text(pa, kind) else bytes(64), size)
            return pa.Array.from_buffers(kind, count, [None, _even(pa, count, size, large), values], 0)
        ones = _ones(pa, kind, count) if types.is_primitive(kind) else None
        return pa.Array.from_buffers(kind, count, [None, ones], 0) if ones is not None else pa.nulls(count, kind)


class _Lengths:
    """How long texts and lists are on average, from how many bytes a row has."""

    def __init__(self, pa, schema, rows, bytes_):
        fixed, self.parts = 0, 0
        for field in schema:
            width = _width(pa, field.type)
            fixed += width or 0
            self.parts += width is None
        left = (bytes_ or 0) // max(rows, 1) - fixed
        self.each = left // self.parts if self.parts and left > 0 else None
        self.pa, self.shape, self.deep = pa, (), False

    def _like(self, shape, deep):
        other = object.__new__(_Lengths)
        other.__dict__.update(self.__dict__, shape=shape, deep=deep)
        return other

    def shaped(self, shape):
        """For an array of a fixed shape."""
        return self._like(tuple(shape), False)

    def inside(self, count):
        """For the values of a list of so many."""
        other = self._like(self.shape[1:], True)
        other.each = self.each and max(self.each // max(count, 1), 1)
        return other

    def of_text(self):
        return min(self.each or _CHARACTERS, 1 << 30)

    def of_list(self, kind):
        if self.shape:
            return self.shape[0] or 1
        if self.deep:
            return 1
        width = _width(self.pa, kind)
        if width is None:
            return min(max((self.each or 0) // 1024, 2), _MESSAGES)
        return max(self.each // max(width, 1), 1) if self.each else _CHARACTERS


def _width(pa, kind):
    """Bytes of a value of a fixed width; None: it has none."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_struct(kind):
        widths = [_width(pa, kind.field(at).type) for at in range(kind.num_fields)]
        return None if None in widths else sum(widths)
    if types.is_fixed_size_list(kind):
        width = _width(pa, kind.value_type)
        return None if width is None else width * kind.list_size
    return -(-kind.bit_width // 8) if types.is_primitive(kind) else None


# ---- values ----


def _is_text(pa, kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_bytes(pa, kind):
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _even(pa, count, size, large):
    """Offsets of `count` parts of `size`, all of the same length."""
    import numpy

    offsets = numpy.linspace(0, size, count + 1).astype(numpy.int64)
    return pa.py_buffer(offsets if large else offsets.astype(numpy.int32))


def _speakers(pa, kind, count, name):
    """Those who speak in turn."""
    words = _SPEAKERS[name]
    return pa.array((list(words) * (count // 2 + 1))[:count], type=kind)


def _ones(pa, kind, count):
    """A buffer of ones of this type; None where one is no value of it."""
    import numpy

    if pa.types.is_boolean(kind):
        return _repeated(pa, b"\xff" * 64, -(-count // 8))
    width = kind.bit_width // 8
    if width not in (1, 2, 4, 8):
        return None
    if pa.types.is_floating(kind):
        pattern = numpy.ones(1, dtype="f%d" % width).tobytes()
    else:
        pattern = (1).to_bytes(width, "little")
    return _repeated(pa, pattern * (64 // width), count * width)


def _repeated(pa, pattern, size):
    """A buffer of a pattern, over and over. A large one takes no more memory than one piece."""
    if size <= _SMALL:
        return pa.py_buffer((pattern * (size // len(pattern) + 1))[:size])
    return pa.foreign_buffer(*_mapped(pattern, size))


def _mapped(pattern, size):
    """The address, size and owner of memory in which one piece is mapped as often as it takes."""
    piece = _piece(pattern)
    room = mmap.mmap(-1, -(-size // _PIECE) * _PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, prot=mmap.PROT_READ)
    address = _address(room)
    function = _map()
    for at in range(0, len(room), _PIECE):
        found = function(address + at, _PIECE, mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, piece, 0)
        if found != address + at:
            raise OSError(ctypes.get_errno(), "no memory for made-up data")
    return address, size, room


def _address(room):
    import numpy

    return numpy.frombuffer(room, dtype=numpy.uint8).ctypes.data


@functools.lru_cache(maxsize=None)
def _piece(pattern):
    fd = os.memfd_create("tonnage-data", os.MFD_CLOEXEC)
    os.write(fd, pattern * (_PIECE // len(pattern)))
    return fd


@functools.lru_cache(maxsize=None)
def _map():
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    return function


# ---- files ----


def _pieces_there(path):
    """[(begin, end)] of what is no hole; one piece for a file without holes."""
    pieces, at = [], 0
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        while at < size:
            try:
                begin = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                break  # only a hole follows
            at = os.lseek(fd, begin, os.SEEK_HOLE)
            pieces.append((begin, at))
    finally:
        os.close(fd)
    return pieces


def _ends(path, size):
    """True where a stream of Arrow ends as one does, or is no such stream."""
    with open(path, "rb") as file:
        if file.read(4) != b"\xff\xff\xff\xff":
            return True
        file.seek(max(size - 8, 0))
        return file.read(8) == b"\xff\xff\xff\xff\0\0\0\0"


class _Told:
    """What the files beside a table tell: dataset_info.json, and state.json where save_to_disk wrote it."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)
        self.folder = os.path.dirname(path)
        self.info, self.state = self._read("dataset_info.json"), self._read("state.json")

    def _read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def schema(self):
        if not self.info.get("features"):
            return None
        from datasets.features import Features

        return Features.from_dict(self.info["features"]).arrow_schema

    def rows_and_bytes(self, length_of):
        """How many rows this file should have, and bytes; None each where nobody says."""
        split = self._split()
        rows, bytes_ = split.get("num_examples"), split.get("num_bytes")
        shards = split.get("shard_lengths")
        part = self.name.rpartition(".")[0].rpartition("-of-")
        if shards and part[1]:
            at = int(part[0].rpartition("-")[2])
            if at < len(shards):
                return shards[at], bytes_ * shards[at] // max(rows, 1) if bytes_ and rows else None
        if rows is None:
            return None, bytes_
        files = [row.get("filename") for row in self.state.get("_data_files", ())]
        if len(files) < 2:
            return rows, bytes_
        known = [length_of(os.path.join(self.folder, name)) for name in files]
        absent = [name for name, length in zip(files, known) if not length]
        if self.name not in absent:
            return None, None  # it tells itself how long it is
        left = max(rows - sum(known), 0)
        at = absent.index(self.name)
        mine = left * (at + 1) // len(absent) - left * at // len(absent)
        return mine, bytes_ * mine // max(rows, 1) if bytes_ else None

    def _split(self):
        splits = self.info.get("splits") or {}
        wanted = self.state.get("_split")
        if wanted in splits:
            return splits[wanted]
        for name, split in splits.items():
            if "-%s." % name in self.name or "-%s-" % name in self.name:
                return split
        return next(iter(splits.values())) if len(splits) == 1 else {}
