# SPDX-License-Identifier: Apache-2.0
"""Loops of a notebook's cells that count their steps (`for step in range(10000)`): once memory has settled they end early, so that the
cells that follow are seen within the time limit, as epochs of data loaders do (fast_forward.py).

Such a loop is one of a cell's own statements, or of a function of a cell that starts a backward pass in it. IPython has a list of what may
change a cell's tree before it is compiled; the loop then takes its values from `turns`. Nothing is ended in a file that a cell imports.
"""

import ast
import sys

from . import fast_forward, frames, guard
from .state import settings, state

_COUNTING = ("range", "xrange", "trange", "count")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BACKWARD = ("backward", "manual_backward")
_TURNS = '__import__("sys").modules["_tonnage_guest.cell_loops"].turns'
_LEAST = 3  # turns with a step: the second forward pass of a training has the optimizer's state beside it, the third repeats it


@guard.guarded
def cell_began(cell):
    """A cell is about to be parsed."""
    state.turns_over = None
    transformers = getattr(cell.shell, "ast_transformers", None)
    if settings.watch_settling and isinstance(transformers, list) and not any(isinstance(each, _Wrap) for each in transformers):
        transformers.append(_Wrap())


class _Wrap(ast.NodeTransformer):
    """Has counting loops take their values from `turns`."""

    def visit(self, node):
        """The tree of a cell, changed in place; as it was where that fails."""
        _wrap(node)
        return node


@guard.guarded
def _wrap(tree):
    for loop, own in _loops(tree, True):
        if _counts(loop.iter) and (own or _goes_backward(loop)):
            call = ast.Call(ast.parse(_TURNS, mode="eval").body, [loop.iter], [])
            for each in ast.walk(call.func):
                ast.copy_location(each, loop.iter)
            loop.iter = ast.copy_location(call, loop.iter)


def _loops(node, own):
    """(loop, whether it stands in no function) of the loops in a tree."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For):
            yield child, own
        yield from _loops(child, own and not isinstance(child, _FUNCTIONS))


def _counts(node):
    """`range(n)`, also in a progress bar."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
    return name in _COUNTING or any(_counts(argument) for argument in node.args)


def _goes_backward(loop):
    return any(isinstance(node, ast.Attribute) and node.attr in _BACKWARD for node in ast.walk(loop))


def turns(values):
    """The values of a loop, until memory has settled in it."""
    place, given, with_step, steps = _place(sys._getframe(1)), 0, 0, state.steps
    for value in values:
        made_a_step, steps = steps < state.steps, state.steps
        with_step += made_a_step
        if made_a_step and with_step >= _LEAST and state.turns_over is not None:
            _left_out(place, values, given)
            return
        given += 1
        yield value


@guard.alone
def _place(frame):
    return frames.describe(frame)


@guard.guarded
def _left_out(place, values, given):
    if place is not None:
        fast_forward.turns_left_out(place, given, len(values) if hasattr(values, "__len__") else None)
