# SPDX-License-Identifier: Apache-2.0
"""Which tensors are inputs: arguments of a top-level module call, and of a batch or data set of a loader, that no
computation of the program made."""

import collections.abc

from . import guard, holds, marks
from .state import state

_DEPTH = 3
_MAX = 64


@guard.alone
def note_call(args, kwargs):
    """A call of a module or a compiled function from outside."""
    found = list(tensors((args, kwargs)))
    _note_batch_size(found)
    rows = [row for tensor in found for row in _rows(tensor)]
    if rows:
        marks.looks.append((marks.now(), rows))


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


def _note_batch_size(found):
    for tensor in found:
        if tensor.dim() >= 1:
            state.batch_size = int(tensor.shape[0])
            return
