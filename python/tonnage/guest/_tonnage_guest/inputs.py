# SPDX-License-Identifier: Apache-2.0
"""Which tensors are inputs: arguments of a top-level module call, and of a batch or data set of a loader, that no
computation of the program made."""

import collections.abc

from . import guard, holds, marks
from .state import state

_DEPTH = 3
_MAX = 64
_CHANNELS = 4  # an image that is no batch has no more of them

_from_loader = False  # a loader has told how many samples a batch has


@guard.alone
def note_call(module, args, kwargs):
    """A call of a module or a compiled function (module None) from outside."""
    found = list(tensors((args, kwargs)))
    if not _from_loader and _has_parameters(module):
        _note_size(next((size for size in map(samples, (*args, *kwargs.values())) if size), None))
    rows = [row for tensor in found for row in _rows(tensor)]
    if rows:
        marks.looks.append((marks.now(), rows))
    return found


@guard.alone
def note_dataset(dataset):
    """A data set that a loader reads: tensors that it keeps on the device."""
    rows = [row for tensor in tensors(getattr(dataset, "__dict__", None)) for row in _rows(tensor)]
    if rows:
        marks.looks.append((marks.now(), rows))


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


@guard.alone
def note_batch(batch):
    """A loader's batch. One sample may be a batch that the data set made by itself: then calls of modules tell."""
    global _from_loader
    size = samples(batch)
    _from_loader = size is not None and size > 1
    if _from_loader:
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
