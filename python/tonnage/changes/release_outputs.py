# SPDX-License-Identifier: Apache-2.0
"""Names that hold outputs are deleted once the loss is taken, so that they do not live through backward.

A name goes when it is bound by a call in the step's block, read last before backward, and read nowhere else in its
scope.
"""

import ast

from . import arguments, code, wrap


def edit(change, source):
    """Releases the outputs of the steps of one file."""
    for statement, name in places(source):
        change.edits(source).insert_after(statement, "del %s" % name)
        change.note(wrap.place_of(source, statement), "%s is released" % name)
        change.effect()
        arguments.say(change, "`del` outputs once the loss is taken: backward needs only what the graph keeps.")


def places(source):
    """[(statement, name)]: behind the statement nothing reads what the name holds."""
    found = []
    for step in code.steps(source):
        before = step.block[:step.index]
        for name in _outputs(source, step, before):
            statement = _last_use(before, name)
            if statement is not None and (statement, name) not in found:
                found.append((statement, name))
    return found


def _outputs(source, step, before):
    """Names bound by calls before backward, in the order of the text, that nothing reads at or behind it."""
    loss = code.names(step.loss) if step.loss is not None else set()
    inside = set(before)
    names = []
    for statement in before:
        if not isinstance(statement, ast.Assign) or not any(isinstance(n, ast.Call) for n in ast.walk(statement)):
            continue
        for name in sorted(code.stored(statement)):
            if name not in loss and name not in names and _read_only_in(source, step, inside, name):
                names.append(name)
    return names


def _read_only_in(source, step, inside, name):
    """True when every reading, and every binding, of a name in its scope stands in these statements."""
    scope = source.scope(step.statement)
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if isinstance(node, ast.Name) and node.id == name:
            statement = node
            while statement is not None and statement not in inside:
                statement = source.parents.get(statement)
            if statement is None:
                return False
    return True


def _last_use(before, name):
    """The statement behind which a name may go: the last that reads it, if it was bound by an earlier one."""
    readers = [statement for statement in before if name in code.names(statement)]
    if not readers or name in code.stored(readers[-1]):
        return None
    return readers[-1]
