# SPDX-License-Identifier: Apache-2.0
"""What a program counts its batches by, while a batch comes in pieces (accumulate.py).

A loop that fetches its batches itself (`for i in range(steps): x = next(batches)`) gets each of its values once more for each
further piece of a batch. So it makes as many updates as before, and what it computes from the value, such as a learning rate,
stays what it was.

len(loader) means whole batches until the loader is used, since schedules are planned by it, and in the head of such a loop.
Later it means pieces, because a loop over the loader counts these. The patch writes the same.
"""

import ast

from . import code, hooks, loaders, rewrite
from .source import Conflict

_FETCHES = ("next", "__next__")
_HEAD = '__import__("sys").modules["_tonnage_changes.turns"].repeated(%r, %d, '
_owner = [None]  # the accumulation that runs
_wrapped = set()  # (path, line) of loops that may be given their values again
_given_again = set()  # those that were
_running = []  # (path, line) of the loops whose body is being run


def watch(change, source, owner):
    """Has the loops of one file that fetch batches themselves run over `repeated`."""
    _owner[0] = owner
    for loop in source.all(ast.For) if not source.before_brackets.isdisjoint(_FETCHES) else ():
        if not isinstance(loop.iter, ast.Tuple) and _fetches(source, loop):
            edits = change.trial_edits(source)
            edits.insert(*source.start(loop.iter), _HEAD % (source.path, loop.lineno))
            edits.insert(*source.end(loop.iter), ")")
            _wrapped.add((source.path, loop.lineno))


def _fetches(source, loop):
    """Whether next() is called in the loop itself, not in one inside it."""
    calls = [node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(code.last(call.func) in _FETCHES and source.above(call, *code.LOOPS) is loop for call in calls)


def repeated(path, line, values):
    """The values of a loop, each again while pieces of the batch that its body has fetched are left."""
    owner, loop = _owner[0], (path, line)
    used = owner.used
    _running.append(loop)
    try:
        for value in values:
            is_loader = owner.used != used  # the head itself fetches: each value is a piece of its own
            used = owner.used
            yield value
            while not is_loader and owner.used != used and not owner.is_last():
                _given_again.add(loop)
                owner.is_repeat, used = True, owner.used
                yield value
            used = owner.used
    finally:
        _running.remove(loop)


def are_given_again():
    """Whether any loop was given values again."""
    return bool(_given_again)


def is_inside():
    """Whether the body of such a loop is being run."""
    return any(loop in _given_again for loop in _running)


def is_given_again(text, loop):
    """Whether a loop was given its values again."""
    return isinstance(loop, ast.For) and (text.path, loop.lineno) in _given_again


def edit_head(edits, text, loop, pieces):
    """The patch: the same values, each `pieces` times."""
    value, time = code.free_name(text, "value"), code.free_name(text, "_")
    edits.insert(*text.start(loop.iter), "(%s for %s in " % (value, value))
    edits.insert(*text.end(loop.iter), " for %s in range(%d))" % (time, pieces))


def counters(place):
    """What the loop in which a backward pass is started adds one to by `name += 1`: it counts pieces, and nothing else is done
    about that."""
    text = rewrite.source_at(place)
    step = next((s for s in code.steps(text) if s.call.lineno <= place["line"] <= s.call.end_lineno), None) if text else None
    if step is None or step.loop is None:
        return []
    found = [node for node in ast.walk(step.loop) if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
             and isinstance(node.value, ast.Constant) and node.value.value == 1 and code.dotted(node.target) is not None]
    return sorted({code.dotted(node.target) for node in found if text.above(node, *code.LOOPS) is step.loop})


class Lengths:
    """Where the program asks how many batches a loader has."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.rows = []  # (place of the loader, place of the question, whether whole batches are meant, drop_last)
        self.heads = {}  # (file, line) -> the loop in whose head the question stands, or None

    def asked(self, loader, frame):
        """The answer, where it is not the loader's own."""
        place = hooks.place(frame)
        if place is None or loader.batch_sampler is None:
            return None
        whole_batches = getattr(loader.batch_sampler, "whole_batches", None)
        head = self._head(place)
        whole = whole_batches is None or (head is not None and (place["file"], head.lineno) in _wrapped)
        row = (loaders.place_of(loader), place, whole, bool(loader.drop_last))
        if row not in self.rows:
            self.rows.append(row)
        try:
            return whole_batches() if whole and whole_batches is not None else None
        except TypeError:
            return None  # a data set without a length: the loader says so itself

    def _head(self, place):
        key = (place["file"], place["line"])
        if key not in self.heads:
            text = rewrite.source_at(place)
            found = _lengths(text, place["line"])
            self.heads[key] = _loop_of_head(text, found[0]) if found else None
        return self.heads[key]

    def planned(self, places):
        """Questions that mean whole batches of the loaders made at these places, but those about a progress bar."""
        for made, place, whole, drop_last in self.rows:
            head = self.heads.get((place["file"], place["line"]))
            is_head = head is not None and (place["file"], head.lineno) not in _given_again
            if whole and made in places and not is_head:
                yield place, drop_last

    def edit(self, change, places):
        """The patch: a length that planned something stays in whole batches. Raises Conflict."""
        for place, drop_last in self.planned(places):
            text = rewrite.source_at(place)
            found = _lengths(text, place["line"])
            if len(found) != 1:
                raise Conflict("len() of a loader is not written at line %d" % place["line"])
            if _is_total(text, found[0]):
                continue
            words = "%s // %d" if drop_last else "-(-%s // %d)"
            if not isinstance(text.parents.get(found[0]), (ast.Assign, ast.keyword, ast.Call)):
                words = "(%s)" % words
            change.edits(text).replace(found[0], words % (text.of(found[0]), self.pieces))


def _lengths(text, line):
    """The calls of len() that a line is part of."""
    if text is None:
        return []
    return [call for call in text.calls_at(line) if isinstance(call.func, ast.Name) and call.func.id == "len"]


def _loop_of_head(text, node):
    while node is not None and not isinstance(node, ast.stmt):
        above = text.parents.get(node)
        if isinstance(above, ast.For) and above.iter is node:
            return above
        node = above
    return None


def _is_total(text, call):
    word = text.parents.get(call)
    return isinstance(word, ast.keyword) and word.arg == "total"
