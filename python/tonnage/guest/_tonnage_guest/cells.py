# SPDX-License-Identifier: Apache-2.0
"""Cells of notebooks, as IPython runs them: in a kernel, or in a shell of this process.

IPython's own events say where a cell begins and ends. Which cell it is the runner says (TONNAGE_CELLS: "1@0,2@2,3@3!,3@3!", in the order in
which they are run: its number, where it stands in the notebook, "!": the notebook lets it fail; "?": the next is run even so); without it a cell is In [n], and
one that is run again is known by its id, where the front end gives one.
Code of each run of a cell is compiled under a name of its own (cellnames.py). What runs inside a cell (%%capture, %%time) is the cell's.
"""

import os

from . import cellnames, events, guard
from .state import state

_TIMED = ("<timed exec>", "<timed eval>")


class _Seen:
    """The cells so far."""

    __slots__ = ("shell", "wanted", "notebook", "begun", "runs", "numbers", "current", "depth", "ignored")

    def __init__(self):
        self.shell = None
        self.wanted = [word for word in os.environ.pop("TONNAGE_CELLS", "").split(",") if word]  # not for what the cells start
        self.notebook = os.environ.pop("TONNAGE_NOTEBOOK", ""), os.environ.pop("TONNAGE_NOTEBOOK_FOLDER", "")
        self.begun = 0
        self.runs = {}  # number -> how often it was begun
        self.numbers = {}  # id of a cell -> its number
        self.current = None
        self.depth = 0  # of cells inside the current one
        self.ignored = False  # what a front end runs for itself


class Cell:
    """One run of a cell."""

    __slots__ = ("number", "index", "run", "name", "source", "may_fail", "goes_on", "result", "last", "earlier", "shell")

    def __init__(self, number, index, run, source, marks, last):
        self.number, self.run, self.source = number, run, source
        self.index = index  # among the cells of the notebook; None: unknown
        self.may_fail, self.goes_on = "!" in marks, "?" in marks
        self.name = cellnames.name_of(number, run)
        self.earlier = {cellnames.name_of(number, before) for before in range(1, run)}
        self.result = None  # IPython's, at its end
        self.last = last  # no other follows
        self.shell = _seen.shell


_seen = _Seen()


def shell():
    """IPython's shell whose cells these are; None without one."""
    return _seen.shell


def notebook():
    """(name of the notebook, the folder that it is relative to) as the runner was given them; empty where another front end runs the cells."""
    return _seen.notebook


def current():
    """The run of a cell that has begun and not ended, or None."""
    return _seen.current


def not_reached():
    """Sentences about the cells that the run did not come to."""
    rest = [word.partition("@")[0] for word in _seen.wanted[_seen.begun:]]
    if not rest:
        return []
    words = "cell %s" % rest[0] if len(rest) == 1 else "cells %s to %s" % (rest[0], rest[-1]) if len(rest) > 2 else "cells %s and %s" % tuple(rest)
    return [words]


def attach(module):
    """IPython.core.interactiveshell has been imported: shells that are made from now on are listened to."""
    cls = module.InteractiveShell
    original = cls.init_events

    def init_events(self):
        original(self)
        _listen(self)

    init_events.__doc__ = original.__doc__
    cls.init_events = init_events


@guard.guarded
def _listen(shell):
    if _seen.shell is not None:
        return  # an embedded shell: its cells are part of what runs it
    _seen.shell = shell
    shell.events.register("pre_run_cell", _before)
    shell.events.register("post_run_cell", _after)
    _name_code(shell)


def _before(info=None):
    _begins(info)


def _after(result=None):
    _ends(result)


@guard.guarded
def _begins(info):
    if _seen.current is not None or _seen.ignored:
        _seen.depth += 1
        return
    if info is None or not info.store_history:
        _seen.ignored = True
        return
    number, index, marks = _number_of(info)
    run = _seen.runs[number] = _seen.runs.get(number, 0) + 1
    _seen.begun += 1
    cell = Cell(number, index, run, info.raw_cell or "", marks, _seen.begun == len(_seen.wanted))
    _seen.current = cell
    state.cell = cell.name
    state.not_reached = not_reached()
    events.cell_began(cell)


def _number_of(info):
    if _seen.begun < len(_seen.wanted):
        number, _, index = _seen.wanted[_seen.begun].partition("@")
        return int(number), int(index.rstrip("!?")), index[len(index.rstrip("!?")):]
    number = len(_seen.shell.user_ns.get("_ih") or "_")  # IPython 9 has counted on by now, earlier ones have not
    identity = getattr(info, "cell_id", None)
    return (_seen.numbers.setdefault(identity, number) if identity else number), None, ""


@guard.guarded
def _ends(result):
    if _seen.depth > 0:
        _seen.depth -= 1
        return
    cell, _seen.current, _seen.ignored = _seen.current, None, False
    if cell is not None:
        cell.result = result
        error = (result.error_before_exec or result.error_in_exec) if result is not None else None
        events.cell_ended(cell, error)
        state.cell = None


# ---- names of code ----


def _name_code(shell):
    compiler = shell.compile
    plain = getattr(compiler, "get_code_name", None)
    if plain is None:
        return  # before IPython 8: names stay as they are

    def get_code_name(raw_code, transformed_code, number):
        name = plain(raw_code, transformed_code, number)
        return _own_name(name, raw_code) or name

    compiler.get_code_name = get_code_name
    compiler.__class__ = _naming(type(compiler))


@guard.alone
def _own_name(name, text):
    """The name for a piece of the current cell's code: one that no other run has."""
    cell = _seen.current
    if cell is None:
        return name
    stem, dot, end = name.rpartition(".") if name.endswith(".py") else (name.rstrip(">"), "", ">" if name.endswith(">") else "")
    number = 1
    while cellnames.is_known(name):
        number += 1
        name = "%s-%d%s%s" % (stem, number, dot, end)
    cellnames.note(name, cell.name, _lines_before(cell.source, text))
    return name


def _lines_before(source, text):
    """Lines of a cell before the part of it that is `text`: those of the magic that has it run, and empty ones, which IPython leaves out."""
    text = (text or "").strip()
    at = source.rstrip().rfind(text) if text else -1
    return source.count("\n", 0, at) if at > 0 else 0


def _naming(kind):
    """IPython's class of compilers, but that the code of %%time is the cell's."""

    def __call__(self, source, filename, *rest, **named):
        filename = _timed(source, filename) or filename
        return kind.__call__(self, source, filename, *rest, **named)

    return type(kind.__name__, (kind,), {"__call__": __call__, "__doc__": kind.__doc__, "__module__": kind.__module__})


@guard.alone
def _timed(source, filename):
    """A name for the code of %%time that is the cell's own; None for other code."""
    cell = _seen.current
    if cell is None or filename not in _TIMED:
        return None
    name = _own_name(filename, None)
    cellnames.note(name, cell.name, lines_of_magic(cell.source))
    return name


def lines_of_magic(source):
    """Lines of a cell before what its magic %%time or %time is given: of several lines with %time, the first counts."""
    lines = source.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("%%"):
            return next((at for at in range(number + 1, len(lines)) if lines[at].strip()), number + 1)
        if "%time" in line:
            return number
    return 0
