# SPDX-License-Identifier: Apache-2.0
"""`del model` where an optimizer still holds its parameters: what is not used any more goes with it.

In the text: names that were bound together with the deleted one, or by what was made of it, and that nothing reads
before they are bound again.
"""

import ast
import re

from . import arguments, code, wrap

_DELETES = re.compile(r"\bdel\s")


def edit(change, source):
    """Looks at each `del` of one file."""
    for statement in source.all(ast.Delete) if _DELETES.search(source.text) else ():
        gone = {target.id for target in statement.targets if isinstance(target, ast.Name)}
        names = sorted(name for name in _holders(source, statement, gone) - gone
                       if _is_dead(source, statement, name) and not _is_deleted(source, statement, name))
        if not names:
            continue
        change.edits(source).insert_after(statement, "%s = None" % " = ".join(names))
        change.note(wrap.place_of(source, statement), "%s, too" % ", ".join(names))
        change.effect()
        arguments.say(change, "Release %s, too: the parameters and their state live as long as it does." % " and ".join(names))


def _own(source, scope):
    """Nodes of a scope, those of functions inside left out."""
    return [node for node in ast.walk(scope) if isinstance(node, (ast.Name, ast.Assign)) and source.scope(node) is scope]


def _holders(source, statement, gone):
    """Names bound with what is deleted, or by what is made of it, before."""
    held = set(gone)
    assigns = [node for node in _own(source, source.scope(statement))
               if isinstance(node, ast.Assign) and node.lineno < statement.lineno]
    for node in sorted(assigns, key=lambda node: node.lineno):
        if code.stored(node) & gone or (code.names(node.value) & held and isinstance(node.value, ast.Call)):
            held |= code.stored(node)
    return held


def _is_dead(source, statement, name):
    """True when nothing reads a name behind the statement before it is bound again, functions included."""
    scope = source.scope(statement)
    if source.above(statement, *code.LOOPS) is not None:
        return False
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    uses = [node for node in uses if source.scope(node) is scope or not _binds(source.scope(node), name)]
    if any(source.scope(node) is not scope for node in uses if isinstance(node.ctx, ast.Load)):
        return False
    later = [node for node in uses if node.lineno > statement.lineno and not isinstance(node.ctx, ast.Del)]
    later.sort(key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset))
    return not later or (isinstance(later[0].ctx, ast.Store) and _follows(source, statement, later[0]))


def _follows(source, statement, node):
    """True when what binds a name is reached from the statement whatever happens: it stands in a block around it."""
    block = source.block(source.statement(node))
    while statement is not None and statement not in block:
        statement = source.parents.get(statement)
    return statement is not None


def _is_deleted(source, statement, name):
    """True when another `del` before the statement names it."""
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)
               and node.lineno < statement.lineno for node in ast.walk(source.scope(statement)))


def _binds(function, name):
    """True when a name is the function's own."""
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in ast.walk(function)):
        return False
    return name in code.stored(function) or any(argument.arg == name for argument in ast.walk(function.args)
                                                if isinstance(argument, ast.arg))
