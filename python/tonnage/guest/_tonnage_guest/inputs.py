# SPDX-License-Identifier: Apache-2.0
"""Which tensors are inputs: arguments of a top-level module call that no computation of the program made."""

import collections.abc
import itertools
import weakref

from . import guard, holds, metadata
from .state import state

_DEPTH = 3
_MAX = 64
_CHANNELS = 4  # an image that is no batch has no more of them


class _Loader:
    """What the loader's last batch told."""

    __slots__ = ("tells_size",)

    def __init__(self):
        self.tells_size = False  # how many samples a batch has


_loader = _Loader()


_sizes = {}  # (id of a module, is a graph built) -> [calls, values of the largest input so far, its shape]
_MAX_SIZES = 64
_returned = {}  # number of a storage -> weak reference to it, of what calls returned last
_MAX_RETURNED = 256


@guard.alone
def note_call(module, args, kwargs):
    """A call of a module or a compiled function (module None) from outside."""
    found = list(tensors((args, kwargs)))
    if _has_parameters(module):
        _note_largest(module, found)
    if not _loader.tells_size and _has_parameters(module):
        _note_size(next((size for size in map(samples, (*args, *kwargs.values())) if size), None))
    rows = [row for tensor in found for row in _rows(tensor)]
    if rows:
        metadata.looks.append((metadata.now(), rows))
    return found


def _note_largest(module, found):
    """The input of this call beside the largest one of the calls before it, of the same module and kind. What an earlier call returned (a
    hidden state, memories of a segment before) is none."""
    largest = max((tensor for tensor in found if not _is_returned(tensor)), key=lambda tensor: tensor.numel(), default=None)
    state.input = None
    if largest is None:
        return
    key = id(module), state.torch.is_grad_enabled()
    row = _sizes.get(key)
    if row is None and len(_sizes) >= _MAX_SIZES:
        return
    values, shape = largest.numel(), list(largest.shape)
    if row is not None:
        state.input = {"shape": shape, "values": values, "before": row[2], "values_before": row[1], "calls_before": row[0]}
    if row is None or values > row[1]:
        _sizes[key] = [(row[0] if row else 0) + 1, values, shape]
    else:
        row[0] += 1


@guard.alone
def call_made(module, result, frame):
    """A module's call from outside has returned this."""
    for storage in filter(None, map(_storage, tensors(result))):
        _returned.pop(storage._cdata, None)
        _returned[storage._cdata] = weakref.ref(storage)
    for number in list(itertools.islice(_returned, max(len(_returned) - _MAX_RETURNED, 0))):
        del _returned[number]


def _is_returned(tensor):
    storage = _storage(tensor)
    known = _returned.get(storage._cdata) if storage is not None else None
    return known is not None and known() is storage


def _storage(tensor):
    """None for a tensor that has none: a sparse one, one of functorch's."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def tensors(value, depth=0):
    """The tensors in nested tuples, lists and mappings, not too deep."""
    if isinstance(value, state.torch.Tensor):
        yield value
    elif depth < _DEPTH and isinstance(value, collections.abc.Mapping):
        for item in list(value.values())[:_MAX]:
            yield from tensors(item, depth + 1)
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for item in value[:_MAX]:
            yield from tensors(item, depth + 1)


def _rows(tensor):
    if tensor.is_cuda and not tensor.requires_grad:
        yield from holds.rows_of("inputs", tensor, "", whole=True)


def _has_parameters(module):
    """False for a loss and the like: what it gets need not be a batch (flattened positions, boxes that were matched)."""
    return module is None or next(iter(module.parameters()), None) is not None


@guard.guarded
def batch_fetched(batch):
    """One sample may be a batch that the data set made by itself: then calls of modules tell."""
    size = samples(batch.data)
    _loader.tells_size = size is not None and size > 1
    if _loader.tells_size:
        _note_size(size)


def _note_size(size):
    if size is not None:
        state.batch_size = size


def samples(value, depth=0):
    """How many samples a batch has, or None. A tensor has its first dimension; tuples, lists and mappings of fields have
    that of their first field; a list of samples (pictures, mappings, as detection has them) has its length."""
    if isinstance(value, state.torch.Tensor):
        return int(value.shape[0]) if value.dim() >= 1 else None
    if depth > _DEPTH or not value:
        return None
    if isinstance(value, collections.abc.Mapping):
        fields = list(value.values())[:_MAX]
    elif isinstance(value, (list, tuple)):
        if depth > 0 or not _are_fields(value):
            if _are_samples(value):
                return len(value)
        fields = value[:_MAX]
    else:
        return None
    return next((size for size in (samples(field, depth + 1) for field in fields) if size), None)


def _are_fields(value):
    # What collate functions return is a tuple or list of fields; a batch that is a bare list of samples has more of them.
    return isinstance(value, tuple) and len(value) <= 4


def _are_samples(value):
    if all(isinstance(item, collections.abc.Mapping) for item in value):
        return True
    return all(isinstance(item, state.torch.Tensor) and item.dim() == 3 and item.shape[0] <= _CHANNELS for item in value)
