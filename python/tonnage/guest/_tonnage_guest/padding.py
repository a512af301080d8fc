# SPDX-License-Identifier: Apache-2.0
"""`--inputs pad=N`: batches as long as any could be, made where a loader hands them out.

All tensors of the batch that have the sequence in dimension 1 get N there, square masks in their last two dimensions, so that inputs
and labels stay as long as each other. What is added repeats the tensor's largest value: an id of the vocabulary, 1 in a
mask. Mappings and lists are changed in place, so that their class stays; a tuple becomes another one.
"""

import collections.abc

from . import guard
from .state import settings, state

_DEPTH = 3
_MAX = 64


class _Padded:
    """What was done."""

    __slots__ = ("batches",)

    def __init__(self):
        self.batches = 0


_padded = _Padded()


def padded(data):
    """The batch that is handed out. Never raises: what cannot be padded is as it was."""
    found = _pad_batch(data)
    return data if found is None else found


@guard.alone
def _pad_batch(data):
    rows, length = _sequence(data)
    if length is None:
        return data
    if length >= settings.pad_to:
        return data
    _padded.batches += 1
    return _replaced(data, rows, length, 0)


def document():
    """What was padded to how much, where anything was."""
    return {"padded_to": settings.pad_to if _padded.batches else None, "padded_batches": _padded.batches or None}


def _sequence(data):
    """(samples, length) of the tensor that says where the sequence is; (None, None) without one."""
    named = list(_tensors(data, ""))
    order = [tensor for name, tensor in named if name == "input_ids"]
    order += [tensor for _, tensor in named if tensor.dim() == 2 and not tensor.is_floating_point()]
    order += [tensor for _, tensor in named if tensor.dim() in (2, 3)]
    tensor = next((tensor for tensor in order if tensor.dim() >= 2), None)
    return (tensor.shape[0], tensor.shape[1]) if tensor is not None else (None, None)


def _tensors(value, name, depth=0):
    if isinstance(value, state.torch.Tensor):
        yield name, value
    elif depth < _DEPTH and isinstance(value, collections.abc.Mapping):
        for key, item in list(value.items())[:_MAX]:
            yield from _tensors(item, key, depth + 1)
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for item in value[:_MAX]:
            yield from _tensors(item, name, depth + 1)


def _replaced(value, rows, length, depth):
    if isinstance(value, state.torch.Tensor):
        return _longer(value, rows, length)
    if depth >= _DEPTH:
        return value
    if isinstance(value, collections.abc.MutableMapping):
        for key, item in list(value.items())[:_MAX]:
            value[key] = _replaced(item, rows, length, depth + 1)
    elif isinstance(value, list):
        value[:_MAX] = [_replaced(item, rows, length, depth + 1) for item in value[:_MAX]]
    elif isinstance(value, tuple):
        items = [_replaced(item, rows, length, depth + 1) for item in value[:_MAX]] + list(value[_MAX:])
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _longer(tensor, rows, length):
    if tensor.dim() < 2 or tensor.shape[0] != rows or tensor.numel() == 0:
        return tensor
    dims = [1] if tensor.shape[1] == length else []
    if tensor.dim() >= 3 and tensor.shape[-1] == tensor.shape[-2] == length:
        dims = sorted({*dims, tensor.dim() - 2, tensor.dim() - 1})
    if not dims:
        return tensor
    sizes = [settings.pad_to if dim in dims else size for dim, size in enumerate(tensor.shape)]
    new = tensor.new_full(sizes, tensor.max().item()) if not tensor.is_floating_point() else tensor.new_zeros(sizes)
    new[tuple(slice(size) for size in tensor.shape)] = tensor
    return new.pin_memory() if tensor.is_pinned() else new
