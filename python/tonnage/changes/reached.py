# SPDX-License-Identifier: Apache-2.0
"""What a change could save at most, by when the program comes to what it would change.

A change of the text acts from the first time on that a statement which it changes is run: by no more can the peak fall than it has grown
since. A load that was never made, or an evaluation behind the step that needs most, is so known to be of no use before it is tried.
"""

import ast
import bisect

from _tonnage_guest import peaks
from _tonnage_guest.state import state

from . import source

_PROBE = '__import__("sys").modules["_tonnage_changes.reached"].at(%d)'

_wishes = {}  # path of a file -> {name of a change: its Edits of that file}
_names = []  # number of a probe -> names of changes that act from there on
_before = {}  # name of a change -> the allocated peak, in bytes, as the program first came to it; None: it has not


def would_change(path, name, edits):
    """A change would make these edits in a file."""
    _before.setdefault(name, None)
    _wishes.setdefault(path, {}).setdefault(name, []).append(edits)


def edit(change, text):
    """Puts probes in front of the statements of a file that some change would change."""
    wished = _wishes.pop(text.path, None)
    if wished is None:
        return
    names, lines = {}, _Lines(text)  # statement -> names of changes
    for name, wishes in wished.items():
        for statement in _statements(text, lines, wishes):
            if statement is None:
                come_to(name)
            else:
                names.setdefault(statement, set()).add(name)
    for statement, found in names.items():
        try:
            change.trial_edits(text).insert_before(statement, _PROBE % len(_names))
            _names.append(found)
        except source.Conflict:  # it shares its line
            for name in found:
                come_to(name)


def _statements(text, lines, wishes):
    """The statements that are run before any of these edits can act; None among them: one was not found."""
    found = set()
    for edits in wishes:
        firsts = [span[0] for span in edits.spans] + [first for first, last, header in edits.wraps] + sorted(edits.removed)[:1]
        firsts += [line for line, rows in edits.before.items() if not all(_defines(text, line, row) for row in rows)]
        found.update(_whole(text, lines.innermost(line)) for line in firsts)
        for line, rows in edits.after.items():
            found.update(_whole(text, lines.that_ends(line, indent)) for indent, _ in rows)
    return found


class _Lines:
    """The statements of a file, by lines."""

    def __init__(self, text):
        self.text = text
        self.all = sorted((node for node in ast.walk(text.tree) if isinstance(node, ast.stmt)), key=lambda node: (node.lineno, node.col_offset))
        self.starts = [node.lineno for node in self.all]

    def innermost(self, line):
        """The last that begins before a line has ended, and ends behind its beginning; or None."""
        for node in reversed(self.all[:bisect.bisect_right(self.starts, line)]):
            if node.end_lineno >= line:
                return node
        return None

    def that_ends(self, line, indent):
        """The one with this indentation that ends in a line; or None."""
        return next((node for node in self.all if node.end_lineno == line and len(self.text.indent(node.lineno)) == indent), None)


def _whole(text, statement):
    """The statement, or the one that it is an `elif` of."""
    while isinstance(statement, ast.If) and text.lines[statement.lineno - 1].lstrip().startswith("elif"):
        statement = text.parents[statement]
    return statement


def _defines(text, line, row):
    """True for a row of an import or of a function, which do nothing by themselves."""
    row = row[len(text.indent(line)):]
    return not row or row.startswith((" ", "import ", "from ", "def ", "@", "#"))


def at(number):
    """Called by the program as it comes to a place."""
    for name in _names[number]:
        if _before[name] is None:
            come_to(name)


def come_to(name):
    """The program comes to what a change is about."""
    if _before.get(name) is None:
        _before[name] = _peak()


def most():
    """{change: bytes that it could save at most}. Nothing is told of programs with several devices: peaks of two are not compared."""
    now = _peak()
    if len(state.peaks) > 1:
        return {}
    return {name: 0 if before is None else now - before for name, before in _before.items()}


def _peak():
    """The allocated peak so far, in bytes."""
    if not state.cuda_initialized:
        return 0
    peaks.read(everywhere=True)
    return peaks.highest()[0]
