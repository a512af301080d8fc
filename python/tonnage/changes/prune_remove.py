# SPDX-License-Identifier: Apache-2.0
"""Pruning is made permanent module by module: the old weights and the mask go.

A program that trains on would train the pruned weights again.
"""

import ast

from . import arguments, code, hooks, table, wrap

_METHODS = ("l1_unstructured", "random_unstructured", "ln_structured", "random_structured", "custom_from_mask")
_HOW = "Call prune.remove(module, name) once a module is pruned: only the product stays."


def edit(change, source):
    """Finds statements that prune one parameter of a module."""
    for call in code.calls(source, *_METHODS):
        statement = source.statement(call)
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            continue
        module = call.args[0] if call.args else getattr(code.keyword(call, "module"), "value", None)
        name = call.args[1] if len(call.args) > 1 else getattr(code.keyword(call, "name"), "value", None)
        if module is None or name is None or not isinstance(call.func, ast.Attribute):
            continue
        owner = source.of(call.func.value)
        text = "%s.remove(%s, %s)" % (owner, source.of(module), source.of(name))
        change.edits(source).insert_after(statement, text)
        change.note(wrap.place_of(source, statement), "pruning is made permanent")
        change.effect()
        arguments.say(change, _HOW)


def install(change):
    """A backward pass weakens the promise."""
    hooks.on_backward(change.guarded(lambda tensors, frame: change.weaken(table.DIFFERENT)))
