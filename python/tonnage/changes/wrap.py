# SPDX-License-Identifier: Apache-2.0
"""Puts what makes the loss into a `with`, in the text of training loops."""

import ast

from . import arguments, code
from .source import Conflict


def forward(change, source, header, what, how):
    """Wraps the statements that make the loss of each step of a file; returns the steps that were wrapped."""
    done = []
    edits = change.edits(source)
    for step in code.steps(source):
        statements = step.forward()
        if not statements:
            continue
        if not any(first <= statements[0].lineno <= last for first, last, text in edits.wraps):
            edits.wrap(statements, header)
        place = place_of(source, statements[0])
        change.note(place, "lines %d to %d %s" % (statements[0].lineno, statements[-1].end_lineno, what))
        change.effect()
        done.append(step)
    if done:
        code.need_import(edits, "torch")
        arguments.say(change, how)
    return done


def place_of(source, node):
    """{"file", "line", "function"} of a node."""
    scope = source.scope(node)
    return {"file": source.path, "line": node.lineno, "function": getattr(scope, "name", "<module>")}


def insert_helper(edits, text):
    """A function of its own behind the file's imports."""
    for statement in edits.source.tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not isinstance(statement, (ast.Import, ast.ImportFrom)):
            edits.insert_before(statement, *text.rstrip("\n").split("\n"), "", "")
            return
    raise Conflict("there are only imports")
