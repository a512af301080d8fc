# SPDX-License-Identifier: Apache-2.0
"""Whose code a file is: the user's, a library's, torch's or Python's, ours, or written by a compiler."""

import io
import os
import re
import sys

USER, LIBRARY, SYSTEM, OWN = range(4)  # LIBRARY: installed, but neither torch nor the standard library
GENERATED = 4  # by Inductor: the program's line behind it tells, where it is known (generated.py)

_GENERATED_FILE = re.compile(r"/([a-z2-7]{2})/c\1[a-z2-7]{40,60}\.py$")
_own = os.path.dirname(os.path.abspath(__file__)) + os.sep
_changes = os.path.join(os.path.dirname(_own[:-1].rpartition(os.sep)[0]), "changes") + os.sep
_notebook = os.path.join(os.path.dirname(_own[:-1].rpartition(os.sep)[0]), "notebook") + os.sep
_stdlib = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_kinds = {}
_installed = {}  # a folder of sys.path -> what pip has put there, the first part of each path
_open, _list = io.open, os.listdir  # before anything replaces them


class _Start:
    """How the process was when torch was imported."""

    __slots__ = ("folder",)

    def __init__(self):
        self.folder = None  # the working folder: relative file names are relative to it


_start = _Start()


def start():
    """Notes the working folder."""
    try:
        _start.folder = os.getcwd()
    except OSError:
        _start.folder = None


def own_folder():
    """The folder of this package, with a slash at its end."""
    return _own


def working_folder():
    """The working folder at start, or None."""
    return _start.folder


def kind(code, globals_of_frame=None):
    """USER, LIBRARY, SYSTEM, OWN or GENERATED, by the code's file."""
    name = code.co_filename
    found = _kinds.get(name)
    if found is None:
        found = _kinds[name] = _classify(name)
    if found is USER and name[:1] == "<" and globals_of_frame is not None:
        # dataclasses and namedtuples compile under "<string>", too
        return USER if globals_of_frame.get("__name__") == "__main__" else LIBRARY
    return found


def kind_of_file(name):
    """As kind(), for a file by its name."""
    found = _kinds.get(name)
    if found is None:
        found = _kinds[name] = _classify(name)
    return found


def is_generated(file):
    """True for a file that Inductor has written."""
    return _GENERATED_FILE.search(file) is not None


def is_users(name):
    """True when a file is the user's."""
    return _classify(absolute(name)) is USER


def absolute(name):
    """The absolute name of a file; relative ones are relative to the working folder at start."""
    if name[:1] in ("/", "<") or _start.folder is None:
        return name
    return os.path.normpath(os.path.join(_start.folder, name))


def short(place):
    """"file:line" of a place, the file relative to the working folder where it lies below."""
    name = place["file"]
    folder = _start.folder
    if folder and name.startswith(folder + os.sep):
        name = name[len(folder) + 1:]
    return "%s%s%d" % (name, ", line " if name.startswith("cell ") else ":", place["line"])


def from_short(text):
    """(file, line) of a place as short() writes it; (None, 0) for other text. A notebook's cell stands in the place of a file."""
    mark = ", line " if text.startswith("cell ") else ":"
    file, _, line = text.rpartition(mark)
    if not line.isdecimal():
        return None, 0
    return (file if mark != ":" else absolute(file)), int(line)


def _classify(name):
    if is_generated(name):
        return GENERATED
    if name[:1] == "<":
        return SYSTEM if name.startswith(("<frozen", "<eval_with_key", "<__array", "<torch")) else USER
    if name.startswith((_own, _changes, _notebook)):
        return OWN
    for folder in ("/site-packages/", "/dist-packages/"):
        at = name.find(folder)
        if at >= 0:
            package = name[at + len(folder):].split("/", 1)[0]
            return SYSTEM if package in ("torch", "functorch", "torchgen", "triton") else LIBRARY
    if name.startswith(_stdlib):
        return SYSTEM
    return LIBRARY if _is_installed_elsewhere(name) else USER


def _is_installed_elsewhere(name):
    """True for a file of a package that `pip install --target` has put into a folder of sys.path, also beside the program."""
    for folder in list(sys.path):
        top = absolute(folder) + os.sep if isinstance(folder, str) and folder else None
        if top is not None and name.startswith(top):
            if top not in _installed:
                _installed[top] = _recorded_in(top)
            if name[len(top):].partition(os.sep)[0] in _installed[top]:
                return True
    return False


def _recorded_in(folder):
    """What the records of the packages that are installed in a folder name
    (https://packaging.python.org/specifications/recording-installed-packages)."""
    found = set()
    for name in _list_or_none(folder):
        try:
            if name.endswith(".dist-info"):
                with _open(os.path.join(folder, name, "RECORD"), encoding="utf-8", errors="replace") as record:
                    found.update(line.partition(",")[0].partition("/")[0] for line in record)
        except OSError:
            continue  # not every tool writes one
    return found - {"..", ""}


def _list_or_none(folder):
    try:
        return _list(folder)
    except OSError:
        return []
