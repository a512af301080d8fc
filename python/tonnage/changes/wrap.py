# SPDX-License-Identifier: Apache-2.0
"""Puts what makes the loss into a `with`, in the text of training loops."""

import ast

from . import arguments, code
from .source import Conflict

# Methods that bring a batch to where the model is, and make nothing.
_MOVES = ("to", "cuda", "float", "half", "long")


def forward(change, source, header, what, how, hoists=True):
    """Wraps what makes the loss of each step of a file; returns the steps that were wrapped. With `hoists` a loss that is made where
    backward() is called (`criterion(model(x), y).backward()`) becomes a statement of its own."""
    done = []
    edits = change.edits(source)
    for step in code.steps(source):
        statements = step.forward()
        if hoists and step.makes_loss():
            _hoist(source, edits, step, header)
            statements = [*(statements if any(_computes(each) for each in statements) else ()), step.statement]
        if not statements:
            continue
        before = [each for each in statements if each is not step.statement]
        if before and not any(first <= before[0].lineno <= last for first, last, text in edits.wraps):
            edits.wrap(before, header)
        place = place_of(source, statements[0])
        change.note(place, "lines %d to %d %s" % (statements[0].lineno, statements[-1].end_lineno, what))
        change.effect()
        done.append(step)
    if done:
        code.need_import(edits, "torch")
        arguments.say(change, how)
    return done


def _hoist(source, edits, step, header):
    """What a step differentiates is made in a `with` in front of it."""
    name = code.free_name(source, "loss")
    edits.insert_before(step.statement, header, "    %s = %s" % (name, source.of(step.loss)))
    edits.replace(step.loss, name)


def _computes(statement):
    """True when it calls anything but what moves a batch."""
    return any(code.last(call.func) not in _MOVES for call in ast.walk(statement) if isinstance(call, ast.Call))


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
