# SPDX-License-Identifier: Apache-2.0
"""Configuration files that the command line names (YAML, JSON, TOML): the values that can be set there, and the file as a
change wants it.

A value is found by its place in the text, so that the patch changes that value and nothing else, comments included. YAML is read
as far as configurations are written by hand: blocks of `key: value`; what stands in lists, in braces and in block texts is left
out. While a change of a file is tried the program opens a copy; the file itself is never written.
"""

import builtins
import collections
import functools
import io
import json
import os
import re
import sys

from . import source
from .option import FILE, Option, kind_of

_MOST = 1 << 20  # bytes
_ENDS = (".yaml", ".yml", ".json", ".toml")
# key: "a.b"; value: as Python has it; line, column, end: of its text; a line counts from 1
Entry = collections.namedtuple("Entry", "key value line column end")
_YAML_LINE = re.compile(r"^( *)(- +)?(?:([\w./-]+)|\"([\w./-]+)\"|'([\w./-]+)')[ \t]*:(?:[ \t]+(.*?))?[ \t]*$")
_TOML_LINE = re.compile(r"^[ \t]*([\w.-]+)[ \t]*=[ \t]*(.*?)[ \t]*$")
_TOML_TABLE = re.compile(r"^[ \t]*\[([\w.-]+)\][ \t]*(?:#.*)?$")
_SCALAR = re.compile(r"(\"[^\"\\]*\"|'[^'\\]*'|[^#\"'{\[&*!|>,][^#,]*?)[ \t]*(?:#.*)?$")


def named():
    """Paths of the files that the command line names, as it names them."""
    found = []
    for word in sys.argv[1:]:
        path = word.partition("=")[2] or word
        if path.lower().endswith(_ENDS) and not re.search(r"[\s,:=]", path) and path not in found and _is_small(path):
            found.append(path)
    return found


def _is_small(path):
    try:
        return os.path.isfile(path) and os.path.getsize(path) <= _MOST
    except OSError:
        return False


def options():
    """[Option, ...] of all values in the files that the command line names."""
    return _options(tuple(named()))


@functools.lru_cache(maxsize=8)
def _options(paths):
    found = []
    for path in paths:
        for entry in entries(path, _read(path)):
            kind = kind_of(entry.value)
            if kind is not None and not re.search(r"[\s,=]", entry.key):
                found.append(Option(entry.key, ("%s%s:%s" % (FILE, path, entry.key),), None, kind, True, None, entry.value))
    return found


def _read(path):
    try:
        with io.open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeError):
        return ""


def entries(path, text):
    """[Entry, ...] of a file's text; [] where it is not understood."""
    lines = text.replace("\r\n", "\n").split("\n")
    try:
        if path.lower().endswith(".json"):
            found = _Json(text).found
        else:
            found = list(_toml(lines) if path.lower().endswith(".toml") else _yaml(lines))
    except (ValueError, IndexError, RecursionError):
        return []
    count = collections.Counter(entry.key for entry in found)
    return [entry for entry in found if count[entry.key] == 1]


# ---- YAML ----


def _yaml(lines):
    stack = []  # (indent, key or None for what is left out)
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip(" "))
        while stack and indent <= stack[-1][0] and not (indent == stack[-1][0] and stripped.startswith("- ")):
            stack.pop()
        if any(key is None for _, key in stack):
            continue
        match = _YAML_LINE.match(line)
        if match is None or match[2] or stripped.startswith("- "):
            stack.append((indent, None))
            continue
        key, rest = match[3] or match[4] or match[5], match[6]
        if not rest or rest.startswith("#"):
            stack.append((indent, key))
        elif rest[0] in "|>{[&*!":
            stack.append((indent, None))
        elif _SCALAR.match(rest):
            scalar = _SCALAR.match(rest)[1]
            yield Entry(".".join([key for _, key in stack] + [key]), _yaml_value(scalar), number, match.start(6),
                        match.start(6) + len(scalar))  # fmt: skip


def _yaml_value(text):
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("null", "~"):
        return None
    if re.fullmatch(r"[-+]?[0-9][0-9_]*", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text.strip("\"'")


# ---- TOML ----


def _toml(lines):
    table = ""
    for number, line in enumerate(lines, 1):
        head, match = _TOML_TABLE.match(line), _TOML_LINE.match(line)
        if head is not None:
            table = head[1] + "."
        elif line.lstrip().startswith("["):
            table = None
        elif match is not None and table is not None and _SCALAR.match(match[2]):
            scalar = _SCALAR.match(match[2])[1]
            yield Entry(table + match[1], _yaml_value(scalar), number, match.start(2), match.start(2) + len(scalar))


# ---- JSON ----


class _Json:
    """A walk over a JSON text that keeps where the values stand; past comments, which a program takes out itself."""

    _SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)

    def __init__(self, text):
        self.text, self.found = text, []
        self.starts = [0] + [at + 1 for at, letter in enumerate(text) if letter == "\n"]
        self._value(self._skip(0), ())

    def _skip(self, at):
        return self._SPACE.match(self.text, at).end()

    def _value(self, at, path):
        """The place behind the value at `at`; path None: in a list."""
        if self.text[at] == "{":
            return self._items(at, "}", path)
        if self.text[at] == "[":
            return self._items(at, "]", None)
        value, end = json.JSONDecoder().raw_decode(self.text, at)
        if path:
            line = sum(1 for start in self.starts if start <= at)
            column = at - self.starts[line - 1]
            self.found.append(Entry(".".join(path), value, line, column, column + end - at))
        return end

    def _items(self, at, close, path):
        at = self._skip(at + 1)
        while self.text[at] != close:
            inner = path
            if close == "}":
                key, at = json.decoder.scanstring(self.text, at + 1)
                at = self._skip(self._skip(at) + 1)
                inner = None if path is None else path + (key,)
            at = self._skip(self._value(at, inner))
            if self.text[at] == ",":
                at = self._skip(at + 1)
        return at + 1


# ---- a file as a change wants it ----


def install(change, wishes):
    """The program opens copies of files. wishes: {path: {key: text of the new value}}; the change's patch is that of the
    files, its effect is seen when one is opened."""
    copies = {}
    for path, values in wishes.items():
        text = source.Plain(os.path.abspath(path), _read(path))
        edits = change.edits(text)
        found = {entry.key: entry for entry in entries(path, text.text)}
        for key, value in values.items():
            if key not in found:
                change.cannot("%s has no %s" % (path, key))
                return
            entry = found[key]
            edits.spans.append((entry.line, entry.column, entry.line, entry.end, _as_written(path, entry, value)))
        copies[os.path.realpath(path)] = source.render(text, [edits])[0], values, path
    _hook(change, copies)


def _as_written(path, entry, value):
    """A new value in the file's own spelling."""
    if isinstance(entry.value, bool) or value in ("True", "False"):
        return value.lower()
    return json.dumps(value) if isinstance(entry.value, str) and not path.lower().endswith((".yaml", ".yml")) else value


def _hook(change, copies):
    original = io.open
    written = {}

    def copy_of(file):
        """The path of the copy that is opened in the place of a file, or None."""
        if not isinstance(file, (str, os.PathLike)):
            return None
        path = os.path.realpath(os.fspath(file))
        if not isinstance(path, str) or path not in copies:
            return None
        text, values, name = copies[path]
        if path not in written:
            written[path] = _write(text, len(written), os.path.splitext(path)[1])
            change.note({"file": path}, "%s: %s" % (name, ", ".join("%s=%s" % pair for pair in values.items())))
        change.effect()
        return written[path]

    look = change.guarded(copy_of)

    def open(file, mode="r", *args, **kwargs):
        reads = isinstance(mode, str) and not set(mode) & set("wax+")
        return original((look(file) if reads else None) or file, mode, *args, **kwargs)

    builtins.open = io.open = open


def _write(text, number, end):
    from _tonnage_guest import record
    from _tonnage_guest.state import settings

    folder = os.path.join(settings.run, "changed-files")
    name = "%d-%d%s" % (os.getpid(), number, end)
    record.write_file(folder, name, text.encode("utf-8"))
    return os.path.join(folder, name)
