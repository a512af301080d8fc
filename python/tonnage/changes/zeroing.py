# SPDX-License-Identifier: Apache-2.0
"""Gradients that a program clears by hand, while a batch comes in pieces (accumulate.py).

A loop over parameters that does nothing but clear gradients (`for p in model.parameters(): p.grad = None`, or `p.grad.zero_()`) is a
zero_grad(), and waits as that does. Gradients of something else than parameters, such as a perturbed input's, are left alone.
"""

import ast
import re

_OF_PARAMETERS = "param"  # stands in what such a loop runs over: parameters(), named_parameters(), param_groups, self.params
_GRADIENT = re.compile(r"\.grad\b")
_IN_PLACE = ("zero_", "detach_", "fill_")
_GUARD = 'if __import__("sys").modules["_tonnage_changes.zeroing"].clears(%r, %d, %r):'
_owner = [None]  # the accumulation that runs


def watch(change, source, owner):
    """The loops of one file that clear gradients ask before they do."""
    _owner[0] = owner
    for loop in loops(source):
        scope = source.scope(loop)
        name = getattr(scope, "name", "<module>")
        change.trial_edits(source).wrap([loop], _GUARD % (source.path, loop.lineno, name))


def clears(path, line, function):
    """Asked by the program before it clears gradients."""
    return _owner[0].clears_by_hand({"file": path, "line": line, "function": function})


def loops(source):
    """Loops over parameters that clear their gradients, the outermost of each."""
    if not source.says(_OF_PARAMETERS) or not _GRADIENT.search(source.text):
        return []
    found = [loop for loop in source.all(ast.For) if _OF_PARAMETERS in ast.dump(loop.iter) and _clears_all(loop.body)]
    return [loop for loop in found if not any(source.above(loop, ast.For) is other for other in found)]


def _clears_all(statements):
    return all(_clears(statement) for statement in statements)


def _clears(statement):
    if isinstance(statement, (ast.If, ast.For)):
        return _clears_all(statement.body) and _clears_all(statement.orelse)
    if isinstance(statement, ast.Assign):
        return all(_is_gradient(target) for target in statement.targets) and _is_none(statement.value)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _IN_PLACE:
        return False
    return any(_is_gradient(node) for node in ast.walk(call.func.value))


def _is_gradient(node):
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None
