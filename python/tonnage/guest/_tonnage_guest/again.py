# SPDX-License-Identifier: Apache-2.0
"""In a trial of `fix` a data set is read once for each size of batch: the batches behind the first are the first again.

No kernel reads them, and the unchanged program has shown that its inputs do not vary (TONNAGE_LAST_NEWS). As long as that is not known (news.py) it is supposed; where they do vary the trial is made again. Reading and decoding them is most of what a trial
on pictures does. Not where a batch holds anything but tensors of the CPU, numbers and texts, nor where making it drew random
numbers that the program shares (a worker has its own): what the program decides by them would be another thing than when unchanged.
"""

import ast
import random
import sys
import weakref

from . import guard, news, recode
from .state import settings, state

_NAME = "_tonnage_again"  # in the module of torch that the changed code runs in
_MOST_BYTES = 1 << 29
_PLAIN = (int, float, bool, str, bytes, type(None))

_kept = {}  # (id of a data set, size of the batch) -> (weak reference to it, batch), or None where it is no such batch


class _Strange(Exception):
    """A batch holds something that cannot be given twice."""


def watch_fetches(cls, name):
    """Gives torch's method other code."""
    return recode.replace(sys.modules[cls.__module__], cls.__dict__.get(name), _NAME, _Fetches, _around, ("self", "possibly_batched_index"))


def _around(body):
    """torch's statements, between a question for what was kept, and keeping."""
    if not isinstance(body[-1], ast.Return):
        return None
    place = body[0]
    name = _NAME + "_batch"
    again = recode.expression("%s.again(self.dataset, possibly_batched_index)" % _NAME, place)
    asked = recode.at(ast.Assign(targets=[ast.Name(name, ast.Store())], value=again), place)
    answer = recode.at(ast.Return(recode.expression("%s[0]" % name, place)), place)
    given = recode.at(ast.If(recode.expression("%s is not None" % name, place), [answer], []), place)
    made = recode.at(ast.Assign(targets=[ast.Name(name, ast.Store())], value=body[-1].value), body[-1])
    keep = recode.call("%s.keep(self.dataset, possibly_batched_index, %s)" % (_NAME, name), body[-1])
    last = recode.at(ast.Return(ast.Name(name, ast.Load())), body[-1])
    return [asked, given, *body[:-1], made, keep, last]


def _again(dataset, indices):
    news.look()
    if (settings.news_step is None and not settings.news_waits) or settings.host_memory:
        return None
    key = _key(dataset, indices)
    found = _kept.get(key)
    if found is None or found[0]() is not dataset:
        _drawn.before = None if key in _kept else _numbers()
        return None
    return (_copy(found[1]),)


def _keep(dataset, indices, batch):
    before, _drawn.before = _drawn.before, None
    if before is None:
        return
    key = _key(dataset, indices)
    _kept[key] = None
    if before != _numbers():
        return
    try:
        known = weakref.ref(dataset)
        if _bytes(batch) <= _MOST_BYTES:
            _kept[key] = known, _copy(batch)
    except (_Strange, TypeError):
        pass


def _key(dataset, indices):
    return id(dataset), len(indices) if isinstance(indices, (list, tuple)) else -1


class _Drawn:
    """Where the random numbers were as a batch was begun."""

    __slots__ = ("before",)

    def __init__(self):
        self.before = None


_drawn = _Drawn()


def _numbers():
    """Where the program's random numbers are; of a worker nobody else draws."""
    if state.torch.utils.data.get_worker_info() is not None:
        return ()
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else (None, None, 0)
    keys = b"" if numpy is None else of_numpy[1].tobytes()
    return random.getstate(), keys, of_numpy[2], bytes(state.torch.get_rng_state().tolist())


def _leaves(value):
    kind = type(value)
    if kind is state.torch.Tensor:
        if value.device.type != "cpu" or value.requires_grad or value.layout is not state.torch.strided:
            raise _Strange
        yield value
    elif kind in (list, tuple):
        for part in value:
            yield from _leaves(part)
    elif kind is dict:
        for part in value.values():
            yield from _leaves(part)
    elif kind not in _PLAIN:
        raise _Strange


def _bytes(value):
    return sum(tensor.nbytes for tensor in _leaves(value))


def _copy(value):
    kind = type(value)
    if kind is state.torch.Tensor:
        return value.clone()
    if kind in (list, tuple):
        return kind([_copy(part) for part in value])
    if kind is dict:
        return {key: _copy(part) for key, part in value.items()}
    return value


class _Fetches:
    """What the changed code calls; also in workers, where the hook records nothing."""

    again, keep = staticmethod(guard.alone(_again)), staticmethod(guard.alone(_keep))
