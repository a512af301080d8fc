# SPDX-License-Identifier: Apache-2.0
"""Checks of weights that are not there, on the CPU: `torch.isnan(parameter).any()` over zeros that nobody touched.

Such memory costs nothing until it is read; a check of 16 GB makes 8 GB of truths and reads all of it, to say what is known. So
once a program has met weights that are not there, these operators ask first whether all of a large tensor is untouched. What
they are asked for then is the same for every number: false by the number, one number for the whole.

Operators are replaced where torch looks kernels up, so that functions and methods are what they were, to compilers, too. A
kernel that was replaced cannot be called, so each has other operators of torch's that compute the same. They stay until the
process ends: one that is taken back may be running.
"""

import threading
import warnings

from .state import state

_lock = threading.Lock()
_library = []  # while the operators are ours


def begin(is_zeros, zeros_like):
    """is_zeros(tensor): it is large, and nobody has written to it. zeros_like(tensor, dtype): zeros of its shape that
    nobody has touched, or None."""
    with _lock:
        if _library or "initialization" in state.lost:
            return
        _library.append(state.torch.library.Library("aten", "IMPL"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that there is such a kernel already
        for name, function in _operators(is_zeros, zeros_like).items():
            _library[0].impl(name, function, "CPU")


def _operators(is_zeros, zeros_like):
    torch, aten = state.torch, state.torch.ops.aten

    def known(tensor):
        try:
            return "initialization" not in state.lost and is_zeros(tensor)
        except Exception:
            return False  # a tensor without storage, or one that answers in its own way

    def isnan(tensor):
        result = zeros_like(tensor, torch.bool) if known(tensor) else None
        return aten.ne.Tensor(tensor, tensor) if result is None else result

    def isinf(tensor):
        result = zeros_like(tensor, torch.bool) if known(tensor) else None
        if result is not None:
            return result
        if tensor.is_complex():
            return isinf(tensor.real) | isinf(tensor.imag)
        return tensor.abs() == float("inf") if tensor.is_floating_point() else torch.zeros_like(tensor, dtype=torch.bool)

    def isfinite(tensor):
        if known(tensor):
            return torch.ones_like(tensor, dtype=torch.bool)  # true takes memory: one byte each, and the weights' are not read
        if tensor.is_floating_point() or tensor.is_complex():
            return (tensor == tensor) & (tensor.abs() != float("inf"))
        return torch.ones_like(tensor, dtype=torch.bool)

    def over(reduce):
        """Of a whole tensor. Two zeros have what any number of them has."""

        def reduced(tensor, **options):
            return reduce(tensor.new_zeros(2) if known(tensor) else tensor, **options)

        return reduced

    return {
        "isnan": isnan, "isinf": isinf, "isfinite": isfinite,
        "any": over(lambda tensor: aten.any.dims(tensor, None)), "all": over(lambda tensor: aten.all.dims(tensor, None)),
        "sum": over(lambda tensor, dtype=None: aten.sum.dim_IntList(tensor, None, dtype=dtype)),
        "max": over(lambda tensor: aten.amax.default(tensor)), "min": over(lambda tensor: aten.amin.default(tensor)),
    }  # fmt: skip
