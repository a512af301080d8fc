# SPDX-License-Identifier: Apache-2.0
"""A loaded checkpoint goes once it has been used: its name is bound to None behind the last statement that reads it.

In the text: names that torch.load() or load_file() is assigned to, and those that a part of one is assigned to. A name
that a function inside reads, or that is read before it is bound, stays.
"""

import ast

from . import arguments, code, wrap

_LOADERS = ("load", "load_file")
_OWNERS = (None, "torch", "safetensors", "safetensors.torch")


def edit(change, source):
    """Looks at each such assignment of one file."""
    done = set()
    for call in code.calls(source, *_LOADERS):
        statement = source.statement(call)
        name = _loaded_name(statement, call)
        scope = source.scope(statement)
        if name is None or (scope, name) in done:
            continue
        done.add((scope, name))
        for held in [name] + _parts(source, scope, name):
            _release(change, source, scope, held)


def _loaded_name(statement, call):
    """The name that a call's value is assigned to, or None."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or statement.value is not call:
        return None
    owner = (code.dotted(call.func) or ".").rpartition(".")[0] or None
    known = owner in _OWNERS and (owner is not None or code.last(call.func) == "load_file")
    return statement.targets[0].id if known and isinstance(statement.targets[0], ast.Name) else None


def _parts(source, scope, name):
    """Names that are bound to a part of what the name holds."""
    found = []
    for node in ast.walk(scope):
        if (isinstance(node, ast.Assign) and source.scope(node) is scope and len(node.targets) == 1
                and isinstance(node.targets[0], ast.Name) and isinstance(node.value, (ast.Subscript, ast.DictComp))
                and name in code.names(node.value) and node.targets[0].id not in found + [name]):
            found.append(node.targets[0].id)
    return found


def _release(change, source, scope, name):
    nodes = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    nodes.sort(key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset))
    if any(source.scope(node) is not scope for node in nodes) or not any(isinstance(node.ctx, ast.Load) for node in nodes):
        return
    if isinstance(scope, ast.Module) and _is_read_elsewhere(source, name):
        return
    block = _common_block(source, scope, nodes)
    last = next((statement for statement in reversed(block) if _contains(statement, nodes)), None)
    if last is None or isinstance(last, (ast.Return, ast.Delete)) or not _is_bound_first(nodes) or _trains(source, last):
        return
    change.edits(source).insert_after(last, "%s = None" % name)
    change.note(wrap.place_of(source, last), "%s is let go" % name)
    change.effect()
    arguments.say(change, "Let the loaded checkpoint go once load_state_dict() has copied it (del checkpoint).")


def _is_read_elsewhere(source, name):
    """True where something of another name space may look: `global` and functions that have been seen already."""
    return any(name in node.names for node in source.all(ast.Global, ast.Nonlocal))


def _contains(statement, nodes):
    return any(inner in nodes for inner in ast.walk(statement) if isinstance(inner, ast.Name))


def _common_block(source, scope, nodes):
    """The innermost list of statements with all of these nodes in it."""
    block = scope.body
    while True:
        holders = [statement for statement in block if _contains(statement, nodes)]
        inner = [part for name in ("body", "orelse", "finalbody") for part in [getattr(holders[0], name, None)]
                 if len(holders) == 1 and isinstance(part, list)]
        whole = [part for part in inner if part and all(any(_contains(statement, [node]) for statement in part) for node in nodes)]
        if len(whole) != 1 or isinstance(holders[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return block
        block = whole[0]


def _is_bound_first(nodes):
    return min(node.lineno for node in nodes if isinstance(node.ctx, ast.Store)) <= min(
        node.lineno for node in nodes if isinstance(node.ctx, ast.Load))


def _trains(source, statement):
    """True for a loop that goes backward: behind it, it is too late."""
    return isinstance(statement, code.LOOPS) and code.has_call(statement, "backward")
