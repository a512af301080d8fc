# SPDX-License-Identifier: Apache-2.0
"""Weak references to tensors. torch.utils.swap_tensors, by which Module.to converts tensors of several parts and torchao's, refuses a tensor
that has any: ours are put aside while it works, since the object stays the same one.
"""

import functools
import weakref

_kept = {}  # id -> Reference to a living tensor


class Reference:
    """To one tensor. Called, it gives the tensor, or None."""

    __slots__ = ("weak",)

    def __init__(self, tensor):
        self.resume(tensor)

    def __call__(self):
        return self.weak() if self.weak is not None else None

    def resume(self, tensor):
        self.weak = weakref.ref(tensor, functools.partial(_forget, id(tensor)))


def _forget(key, _):
    _kept.pop(key, None)


def to(tensor):
    """The one Reference that there is to a tensor."""
    found = _kept.get(id(tensor))
    if found is None or found() is not tensor:
        found = _kept[id(tensor)] = Reference(tensor)
    return found


def around_swap(original):
    """For torch.utils.swap_tensors."""

    @functools.wraps(original)
    def swap_tensors(t1, t2):
        aside = [(_kept[id(tensor)], tensor) for tensor in (t1, t2) if id(tensor) in _kept]
        for reference, _ in aside:
            reference.weak = None
        try:
            return original(t1, t2)
        finally:
            for reference, tensor in aside:
                reference.resume(tensor)

    return swap_tensors
