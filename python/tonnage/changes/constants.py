# SPDX-License-Identifier: Apache-2.0
"""Numbers that the program's text gives a name to, at the top of a module: `BATCH_SIZE = 4`, `GRADIENT_ACCUMULATE_EVERY = 4`. Many programs
without a command line have their switches there, and its author would change the number: `file:train.py:BATCH_SIZE=2`.

A constant is one where the module binds the name once, in a statement of its own, and nothing in the module declares it global. Only
those are offered that keep the batch of an update, as the names say it; what they do is seen in the trial (pace.py).
"""

import ast
import os
import re
import sys

from . import meaning, rewrite
from .option import FILE, kind_of, literal, make, shown_path

_ROLES = ("batch", "total", "accumulation", "chunks")
_NUMBER = re.compile(r"(?m)^\w+[ \t]*=[ \t]*[-+(]*\d")

_found = {}  # path -> [Option, ...] of the program's files


def collect(change, text):
    """Notes the constants of a file (rewrite.add); nothing is changed."""
    if not text.path.endswith(".py") or any(letter in text.path for letter in " \t:=+,"):
        return  # such a path cannot stand in a value
    if not _NUMBER.search(text.text):
        return
    found = []
    for name, assignment in _constants(text).items():
        value = literal(assignment.value)
        option = make(name, ("%s%s:%s" % (FILE, shown_path(text.path), name),), kind_of(value), None, value, equals=True)
        if meaning.role(option) in _ROLES:
            found.append(option)
    chosen = meaning.by_role(found)
    if "chunks" in chosen or {"batch", "accumulation"} <= set(chosen) or {"batch", "total"} <= set(chosen):
        _found[text.path] = found


def options():
    """[[Option, ...], ...] of the files, those of the program's own script first."""
    script = os.path.abspath(sys.argv[0] or "")
    return [_found[path] for path in sorted(_found, key=lambda path: path != script)]


def edit(change, path, values):
    """The edits of a file whose constants have other values. values: {"BATCH_SIZE": "2"}."""
    wanted = os.path.realpath(path)

    def look(change, text):
        if os.path.realpath(text.path) != wanted:
            return
        edits, constants = change.edits(text), _constants(text)
        for name, value in values.items():
            if name not in constants:
                change.cannot("%s has no constant %s, or several" % (path, name))
                return
            edits.replace(constants[name].value, value)
            change.note({"file": text.path, "line": constants[name].lineno}, "%s = %s" % (name, value))
        change.effect()

    rewrite.add(change, look)


def _constants(text):
    """{name: its assignment} of a module."""
    found, bound = {}, {}
    for node in ast.walk(text.tree):
        names = node.names if isinstance(node, ast.Global) else [node.id] if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else ()
        for name in names:
            bound[name] = bound.get(name, 0) + 1
    for statement in text.tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if bound[name] == 1 and type(literal(statement.value)) is int:
                found[name] = statement
    return found
