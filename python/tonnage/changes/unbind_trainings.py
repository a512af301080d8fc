# SPDX-License-Identifier: Apache-2.0
"""A loop that trains anew each time begins with nothing of the last time: variables that hold its model and optimizer are bound to None.

In the text: of each optimizer that is made in a loop, what it is bound to, what it is made of, and what is made of these; as far as the loop binds it
anew each time before it is read.
"""

import ast

from . import arguments, code, wrap


def edit(change, source):
    """Looks at each loop of one file that makes an optimizer."""
    done = set()
    for call in code.optimizers(source):
        loop = _outermost(source, call)
        if loop is None or loop in done:
            continue
        done.add(loop)
        names = [name for name in _holders(source, loop, call) if _is_bound_first(source, loop, name)]
        if names:
            change.edits(source).insert_before(loop.body[0], "%s = None" % " = ".join(names))
            change.note(wrap.place_of(source, loop), "%s of the last time go first" % ", ".join(names))
            change.effect()
            arguments.say(change, "Set %s to None before the next training begins." % " and ".join(names))


def _outermost(source, call):
    """The outermost loop around an optimizer's making, in its function."""
    loop, above = None, source.above(call, *code.LOOPS)
    while above is not None:
        loop, above = above, source.above(above, *code.LOOPS)
    return loop


def _holders(source, loop, call):
    """Names that hold what is trained, in the order of the text."""
    statement = source.statement(call)
    held = code.stored(statement) | {name for argument in call.args[:1] for name in code.names(argument)}
    for _ in range(3):
        for node in ast.walk(loop):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and code.names(node.value) & held and not _is_number(node.value):
                held |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    stored = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in held]
    return list(dict.fromkeys(node.id for node in sorted(stored, key=lambda node: (node.lineno, node.col_offset))))


def _is_number(call):
    return code.last(call.func) in ("evaluate", "item", "float", "int", "len", "validate", "test")


def _is_bound_first(source, loop, name):
    """True where each turn of the loop binds the name, at the loop's own level, before it is read; and no function inside reads it."""
    nodes = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == name]
    if any(source.scope(node) is not source.scope(loop) for node in nodes):
        return False
    if isinstance(loop, (ast.For, ast.AsyncFor)) and name in code.stored(loop.target) | code.names(loop.iter):
        return False
    for statement in loop.body:
        inside = [node for node in ast.walk(statement) if node in nodes]
        if inside:
            stores = isinstance(statement, ast.Assign) and name in {target.id for target in statement.targets if isinstance(target, ast.Name)}
            return stores and not any(isinstance(node.ctx, ast.Load) for node in inside)
    return False
