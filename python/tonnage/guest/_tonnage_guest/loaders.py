# SPDX-License-Identifier: Apache-2.0
"""Batches of torch's data loaders: the sensor.

The iterator's own __next__ gets our question between its own statements (recode.py), where the batch has been counted and is
about to be handed out. So no frame of ours stands in the traceback of a data set that raises, and an epoch that ends early
ends by a StopIteration of torch's own frame, which nothing but the loop around it can meet.
"""

import ast
import inspect
import sys

from . import events, frames, guard, padding, recode
from .state import settings, state

_NAME = "_tonnage_batches"  # in the module of torch that the changed code runs in
_INDICES = "_tonnage_indices"


def watch_batches(cls, name):
    """Gives torch's method other code."""
    function = inspect.unwrap(cls.__dict__.get(name))
    return recode.replace(sys.modules[cls.__module__], function, _NAME, _fetched, _asking, ("self",))


def watch_indices(cls, name):
    """Gives torch's method other code: we are told before and after a batch of indices comes from the sampler."""
    function = inspect.unwrap(cls.__dict__.get(name))
    return recode.replace(sys.modules[cls.__module__], function, _INDICES, _indices, _telling, ("self",))


def _telling(body):
    """torch's only statement, `return next(...)`, with our calls around what it takes."""
    if len(body) != 1 or not isinstance(body[0], ast.Return) or not isinstance(body[0].value, ast.Call):
        return None
    place = body[0]
    taken = recode.at(ast.Assign(targets=[recode.at(ast.Name("_indices", ast.Store()), place)], value=place.value), place)
    back = recode.at(ast.Return(recode.expression("_indices", place)), place)
    return [recode.call("%s(self)" % _INDICES, place), taken, recode.call("%s(self, _indices)" % _INDICES, place), back]


def _asking(body):
    """torch's statements; once the batch is counted, we are asked whether the epoch ends instead."""
    found = [(statements, i) for statements in _blocks(body) for i, each in enumerate(statements) if _counts(each)]
    fetched = [name.id for statements in _blocks(body) for each in statements if isinstance(each, ast.Assign)
               for name in each.targets if isinstance(name, ast.Name) and _is_fetch(each.value)]
    if len(found) != 1 or len(fetched) != 1:
        return None
    statements, i = found[0]
    place = statements[i]
    test = recode.expression("%s(self, self._num_yielded == 1, %s)" % (_NAME, fetched[0]), place)
    end = ast.Raise(exc=recode.expression("StopIteration", place), cause=None)
    statements.insert(i + 1, recode.at(ast.If(test=test, body=[recode.at(end, place)], orelse=[]), place))
    if settings.pad_to is not None:
        name = recode.at(ast.Name(fetched[0], ast.Store()), place)
        given = recode.expression("%s.padded(%s)" % (_NAME, fetched[0]), place)
        statements.insert(i + 2, recode.at(ast.Assign(targets=[name], value=given), place))
    return body


def _blocks(body):
    """The list of statements, and those of the `with` blocks in it."""
    yield body
    for each in body:
        if isinstance(each, ast.With):
            yield from _blocks(each.body)


def _counts(statement):
    return (isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Attribute)
            and statement.target.attr == "_num_yielded")


def _is_fetch(value):
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "_next_data"


@guard.guarded
def _fetched(iterator, first, data):
    """A batch is there. True when its epoch shall end instead."""
    frame = frames.caller(1)
    batch = events.Batch(iterator, first, frame, data, state.phase)
    events.batch_fetched(batch)
    if state.cuda_initialized and frame is not None:
        events.batch_begins(batch)
    return batch.ends


_fetched.padded = padding.padded


@guard.guarded
def _indices(iterator, *taken):
    """A batch of indices is about to be taken from the sampler; or, with it, has been."""
    if taken:
        events.indices_taken(iterator, taken[0])
    else:
        events.indices_wanted(iterator)
