# SPDX-License-Identifier: Apache-2.0
"""The patch of accumulate: smaller batches where the loaders are made, the loss divided, and what belongs to the update under an `if`.

Only where all of what was seen stands in loops with a backward pass each.
"""

import ast

from . import arguments, code, held_back, loaders, rewrite, turns, zeroing
from .source import Conflict

_STEP, _ZERO = "== 0", "== 1"


def make(run):
    """Edits the loops that an _Accumulation has seen, where all of what was seen stands in loops with a backward pass each; else the words must do."""
    if not run.loaders or "backward" not in run.sites or "step" not in run.sites:
        return
    scale = ", divide the loss by %d" % run.pieces if run.divided else ""
    own = {pace.batches() for pace in run.paces.values()}
    words = "Update only every %d micro-batches%s, and zero the gradients after the update." % (
        run.pieces * max(own, default=1), scale)
    run.change.how = run.change.how.replace(run.words or words, words)
    run.words = words
    arguments.say(run.change, words)
    for name in turns.counters(run.sites["backward"][0]):
        arguments.say(run.change, "%s counts micro-batches then, %d for each batch: mind what it ends or triggers." % (name, run.pieces))
    run.change.patches.clear()
    try:
        if len(own) > 1:
            raise _NotOneLoop()
        for place, size in run.loaders:
            if loaders.edit_size(run.change, place, size, run.piece_text) is None:
                raise _NotOneLoop()
        run.lengths.edit(run.change, [place for place, _ in run.loaders])
        _edit_loops(run, run.pieces * max(own, default=1))
    except (Conflict, _NotOneLoop):
        run.change.patches.clear()


def _edit_loops(run, every):
    steps = [_step_at(run, place) for place in run.sites["backward"]]
    if len({_region(step) for step in steps}) < len(steps):
        raise _NotOneLoop()
    left = {what: list(rows) for what, rows in run.sites.items() if what != "backward"}
    for step in steps:
        own = {what: [place for place in rows if _belongs(place, step)] for what, rows in left.items()}
        left = {what: [place for place in rows if place not in own[what]] for what, rows in left.items()}
        _edit_loop(run, step, own, every)
    if any(left.values()) or any(path not in {step.source.path for step in steps} for path in held_back.averages()):
        raise _NotOneLoop()


def _belongs(place, step):
    """Whether what was seen at a place is of this loop: it stands in it, or in the function that has no other."""
    text, loop = step.source, _region(step)
    calls = text.calls_at(place["line"]) if place["file"] == text.path else ()
    if not calls:
        return False
    return _stands_in(text, calls[0], loop) or not any(
        _stands_in(text, calls[0], other.loop) for other in code.steps(text) if other.loop is not None)


def _step_at(run, place):
    """The backward pass at a place, in a loop of its function's, or in a function that is called with each piece."""
    text = rewrite.source_at(place)
    found = next((step for step in code.steps(text) if step.call.lineno <= place["line"] <= step.call.end_lineno), None) if text is not None else None
    is_known = found is not None and (found.loop is not None or _counter_of(found, "") is not None)
    once_each = 0 <= run.used - run.backwards <= 1  # a program may be ended within its last one
    if not is_known or (found.loop is None and (not once_each or turns.are_given_again())):
        raise _NotOneLoop()
    return found


def _edit_loop(run, step, sites, every):
    text, region = step.source, _region(step)
    edits, name = run.change.edits(text), code.free_name(text, "micro_step")
    if turns.is_given_again(text, step.loop):
        turns.edit_head(edits, text, step.loop, run.pieces)
    if run.divided and step.loss is not None:
        whole = text.of(step.loss)
        simple = isinstance(step.loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        divided = "%s / %d" % (whole if simple else "(%s)" % whole, run.pieces)
        edits.replace(step.loss, "(%s)" % divided if step.loss is step.call.func.value else divided)
    guards = {statement: what for what in ("zero_before", "step", "zero_after")
              for statement in _statements(run, text, region, sites.get(what, ()))}
    averages = held_back.averages().get(text.path, ())
    if guards or averages:
        name = _count(edits, step, name)
    for average in averages:
        if not _stands_in(text, average, region):
            raise _NotOneLoop()
        _guard(edits, text, average, "if %s %% %d %s:" % (name, every, _STEP))
    for statement, what in guards.items():
        # what zeroes in front of the backward pass belongs to a batch's first piece, whatever was fetched by then
        first = what != "step" and statement.lineno < step.call.lineno
        _guard(edits, text, statement, "if %s %% %d %s:" % (name, every, _ZERO if first else _STEP))


def _statements(run, text, loop, places):
    found, loops = [], zeroing.loops(text)
    for place in places:
        calls = text.calls_at(place["line"])
        statement = text.statement(calls[0]) if calls else None
        if statement is not None and not _stands_in(text, statement, loop) and _is_behind(run, text, statement, loop):
            continue
        if (not isinstance(statement, ast.Expr) and statement not in loops) or not _stands_in(text, statement, loop):
            raise _NotOneLoop()
        if statement not in found:
            found.append(statement)
    return sorted(found, key=lambda node: node.lineno)


def _is_behind(run, text, statement, loop):
    """An update beside a loop that is given its values again comes after whole batches by itrun."""
    return run.whole and turns.is_given_again(text, loop) and text.scope(statement) is text.scope(loop)


def _guard(edits, text, statement, header):
    first, last, before = edits.wraps[-1] if edits.wraps else (None, None, None)
    if before == header and last == statement.lineno - 1 and first in [each.lineno for each in text.block(statement)]:
        edits.wraps[-1] = (first, statement.end_lineno, header)
    else:
        edits.wrap([statement], header)


class _NotOneLoop(Exception):
    """What was seen does not stand in loops with a backward pass each."""


def _region(step):
    """What one piece runs through: the loop's body, or the function that is called with each."""
    return step.loop or step.source.scope(step.statement)


def _counter_of(step, name):
    """What a function that is called with each piece counts them in, an attribute of its object or of its own; None where neither is known."""
    text, function = step.source, step.source.scope(step.statement)
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    outer = text.parents.get(function)
    if isinstance(outer, ast.ClassDef):
        return "%s.%s" % (function.args.args[0].arg, name) if function.args.args else None
    return "%s.%s" % (function.name, name) if isinstance(outer, ast.Module) else None


def _count(edits, step, name):
    """Writes what counts the pieces, and returns its name."""
    if step.loop is not None:
        edits.insert_before(step.loop, "%s = 0" % name)
        edits.insert_before(step.loop.body[0], "%s += 1" % name)
        return name
    body, counter = _region(step).body, _counter_of(step, name)
    first = body[1] if ast.get_docstring(_region(step), clean=False) is not None and len(body) > 1 else body[0]
    owner, _, attribute = counter.rpartition(".")
    edits.insert_before(first, '%s = getattr(%s, "%s", 0) + 1' % (counter, owner, attribute))
    return counter


def _stands_in(text, node, loop):
    while node is not None and node is not loop:
        node = text.parents.get(node)
    return node is loop
