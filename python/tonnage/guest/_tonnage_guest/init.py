# SPDX-License-Identifier: Apache-2.0
"""Large random initialisation on the CPU, skipped.

A random fill of at least 1 Mi elements of a floating CPU tensor leaves the memory alone: what was never touched costs
no host memory, reads zero, and on a virtual GPU nobody reads it. Smaller fills run for real. The generator is not
advanced over what was skipped, so random order differs from a real run; the count goes into the guest document.

What is done to such memory afterwards stays exact: conversions and copies on the CPU treat the pages that were touched
and leave the others untouched in the result, too. A storage is known by its address in torch together with a weak
reference, which keeps that address from being used again.

Arithmetic that belongs to an initialisation (uniform_().erfinv_().mul_().add_().clamp_()) is skipped while the whole
tensor is untouched since its random fill; these methods become ours with the first skipped fill, where no step came before.
"""

import functools
import sys

from . import guard, methods, pages, predicates, weights
from .state import state

_LARGE = 1 << 20
_FILLS = ("normal_", "uniform_", "exponential_", "log_normal_", "cauchy_", "geometric_", "bernoulli_", "random_")
_CHAIN = ("erfinv_", "mul_", "add_", "sub_", "div_", "clamp_", "clip_", "clamp_min_", "clamp_max_")
_CONVERSIONS = {"bfloat16": "bfloat16", "half": "float16", "float": "float32", "double": "float64"}

_marks = {}  # StorageImpl address -> True: nothing but a random fill so far; False: real values (zeros included)


class _Methods:
    """What of torch.Tensor is ours."""

    __slots__ = ("kinds", "chain_installed", "purge_at")

    def __init__(self):
        self.kinds = ()  # classes of tensors that are looked at
        self.chain_installed = False  # the arithmetic of initialisations
        self.purge_at = 1024  # so many metadata


_methods = _Methods()


def install(torch):
    """Replaces the methods."""
    _methods.kinds = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) if hasattr(torch.nn, "Buffer") else (
        torch.Tensor, torch.nn.Parameter)
    cls = torch.Tensor
    for name in _FILLS:
        methods.put(cls, name, _is_fillable, _skip_fill)
    methods.put(cls, "zero_", _is_zeroable, _zero)
    methods.put(cls, "fill_", _is_marked, _fill)
    for name in _CONVERSIONS:
        methods.put(cls, name, _is_marked, _converter(name))
    methods.put(cls, "to", _is_marked_here, _to)
    methods.put(cls, "type", _is_marked, _type)
    methods.put(cls, "clone", _is_marked, _clone)
    methods.put(cls, "copy_", _is_large, _copy)
    methods.put(cls, "contiguous", _is_rearranged, _contiguous)
    methods.put(cls, "reshape", _is_rearranged, _reshape)
    guard.when_lost("initialization", uninstall)


def uninstall():
    """torch.Tensor is as before."""
    for name in _FILLS + _CHAIN + tuple(_CONVERSIONS) + ("zero_", "fill_", "to", "type", "clone", "copy_", "contiguous", "reshape"):
        methods.take_back(state.torch.Tensor, name)


# ---- which tensors ----

def _is_large(tensor):
    return type(tensor) in _methods.kinds and state.armed and tensor.is_cpu and tensor.numel() >= _LARGE


def _is_fillable(tensor):
    return _is_large(tensor) and tensor.is_floating_point() and not _is_refused(tensor) and _is_ours(tensor)


def _is_zeroable(tensor):
    return _is_large(tensor) and tensor.is_contiguous() and not _is_refused(tensor) and _is_ours(tensor)


def _is_marked(tensor):
    return _is_large(tensor) and (tensor.untyped_storage()._cdata in _marks or _is_stand_in(tensor))


def _is_stand_in(tensor):
    """Weights that are not there: zeros that nobody touched."""
    found = tensor.is_contiguous() and weights.is_stand_in(tensor.data_ptr(), _bytes(tensor))
    if found:
        predicates.begin(_is_zeros, _zeros_like)
    return found


def _is_marked_here(tensor):
    """As _is_marked, but not for a module that only moves to another device: those calls run as without us."""
    if not _is_marked(tensor):
        return False
    caller = sys._getframe(2)
    if caller.f_code.co_name == "convert" and caller.f_code.co_filename.endswith("/nn/modules/module.py"):
        dtype = caller.f_locals.get("dtype", tensor.dtype)
        return dtype is not None and dtype is not tensor.dtype
    return True


def _is_refused(tensor):
    """torch itself raises for this in-place change."""
    return tensor.requires_grad and tensor.is_leaf and state.torch.is_grad_enabled()


def _is_ours(tensor):
    """Memory of PyTorch's own CPU allocator: storages over files, arrays and shared memory cannot be resized."""
    return tensor.layout is state.torch.strided and tensor.untyped_storage().resizable()


def _mark(tensor, random):
    storage = tensor.untyped_storage()
    if storage._cdata not in _marks:
        storage._weak_ref()
        if len(_marks) >= _methods.purge_at:
            _purge(type(storage))
            _methods.purge_at = max(1024, 2 * len(_marks))
    _marks[storage._cdata] = random


def _purge(cls):
    for address in [address for address in _marks if cls._expired(address)]:
        del _marks[address]
        cls._free_weak_ref(address)


# ---- fills ----

def _skip_fill(original, tensor, *args, **kwargs):
    original(tensor.detach().reshape(-1)[:0] if tensor.is_contiguous() else tensor.detach()[:0], *args, **kwargs)
    _skipped(tensor)
    return tensor


def _skipped(tensor):
    """The tensor counts as randomly filled. What it held before is wiped where it was touched, so that nobody takes
    somebody else's freed bytes for numbers."""
    ranges = pages.touched(tensor.data_ptr(), _bytes(tensor)) if tensor.is_contiguous() else None
    if ranges is not None:
        _wipe(tensor, ranges)
    if not _marks.get(tensor.untyped_storage()._cdata, False):
        state.init_tensors += 1
        state.init_bytes += _bytes(tensor)
    _mark(tensor, True)
    _install_chain()


def _install_chain():
    if not _methods.chain_installed and state.steps == 0:
        _methods.chain_installed = True
        for name in _CHAIN:
            methods.put(state.torch.Tensor, name, _is_random, _skip_chain)


def _is_random(tensor):
    return _is_marked(tensor) and _marks.get(tensor.untyped_storage()._cdata) and tensor.is_contiguous() \
        and not _is_refused(tensor)


def _skip_chain(original, tensor, *args, **kwargs):
    plain = all(isinstance(arg, (int, float)) for arg in args) and all(
        arg is None or isinstance(arg, (int, float)) for arg in kwargs.values())
    if not plain or not _is_untouched(tensor):
        return original(tensor, *args, **kwargs)
    return tensor


def _zero(original, tensor):
    ranges = pages.touched(tensor.data_ptr(), _bytes(tensor))
    if ranges is None or pages.total(ranges) * 2 > _bytes(tensor):
        return original(tensor)
    _wipe(tensor, ranges)
    _mark(tensor, False)
    return tensor


def _fill(original, tensor, value):
    if isinstance(value, (int, float)) and value == 0 and _is_zeroable(tensor):
        return _zero(lambda t: original(t, value), tensor)
    return original(tensor, value)


def _wipe(tensor, ranges):
    flat, size = tensor.detach().view(-1), tensor.element_size()
    for start, stop in ranges:
        state.torch._C.TensorBase.zero_(flat[start // size:-(-stop // size)])


def _is_untouched(tensor):
    """True when nothing but page ends, shared with neighbours, was touched."""
    ranges = pages.touched(tensor.data_ptr(), _bytes(tensor))
    return ranges is not None and pages.total(ranges) <= 2 * 4096


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


# ---- copies and conversions ----

def _sparse(tensor, dtype):
    """A copy in another dtype that touches what was touched in the original. None where torch should do it."""
    if not tensor.is_contiguous() or (tensor.requires_grad and state.torch.is_grad_enabled()):
        return None
    ranges = _written(tensor)
    if ranges is None:
        return None
    try:
        result = state.torch.empty(tensor.shape, dtype=dtype, device="cpu")
    except RuntimeError:
        return None  # no host memory: torch says so itself
    dirty = pages.touched(result.data_ptr(), _bytes(result))
    if dirty is None:
        return None
    _wipe(result, dirty)
    _copy_ranges(result, tensor, ranges)
    _mark(result, _marks.get(tensor.untyped_storage()._cdata, False))
    return result


def _written(tensor):
    """The ranges of bytes that hold something. None where that is most of it, or cannot be told."""
    ranges = pages.touched(tensor.data_ptr(), _bytes(tensor))
    if ranges is not None and pages.total(ranges) * 2 > _bytes(tensor):
        ranges = pages.not_zero(tensor.data_ptr(), ranges)
    return ranges if ranges is not None and pages.total(ranges) * 2 <= _bytes(tensor) else None


def _copy_ranges(target, source, ranges):
    to, from_, size = target.view(-1), source.detach().view(-1), source.element_size()
    for start, stop in ranges:
        first, last = start // size, -(-stop // size)
        state.torch._C.TensorBase.copy_(to[first:last], from_[first:last])


def _converter(name):
    dtype_name = _CONVERSIONS[name]

    def convert(original, tensor, *args, **kwargs):
        dtype = getattr(state.torch, dtype_name)
        if args or kwargs or tensor.dtype is dtype:
            return original(tensor, *args, **kwargs)
        result = _sparse(tensor, dtype)
        return original(tensor) if result is None else result

    return convert


def _to(original, tensor, *args, **kwargs):
    dtype = kwargs.get("dtype")
    for arg in args:
        if isinstance(arg, state.torch.dtype):
            dtype = arg
        elif isinstance(arg, state.torch.Tensor):
            dtype = arg.dtype
    copies = kwargs.get("copy") or (len(args) > 2 and args[-1] is True)
    plain = kwargs.get("memory_format") in (None, state.torch.preserve_format, state.torch.contiguous_format)
    if dtype is None or dtype is tensor.dtype or copies or not plain:
        return original(tensor, *args, **kwargs)
    result = _sparse(tensor, dtype)
    # What is left to do, a move to a device, finds its dtype already there.
    return original(tensor if result is None else result, *args, **kwargs)


def _type(original, tensor, dtype=None, *args, **kwargs):
    result = None
    if isinstance(dtype, state.torch.dtype) and dtype is not tensor.dtype:
        result = _sparse(tensor, dtype)
    return original(tensor if result is None else result, dtype, *args, **kwargs)


def _clone(original, tensor, *args, **kwargs):
    plain = kwargs.get("memory_format") in (None, state.torch.preserve_format, state.torch.contiguous_format)
    result = _sparse(tensor, tensor.dtype) if plain and not args else None
    return original(tensor, *args, **kwargs) if result is None else result


def _is_rearranged(tensor):
    """A view of a stand-in's memory, or of a marked one, in another order: putting it in order is a copy."""
    if not _is_large(tensor) or _is_stand_in(tensor) or tensor.is_contiguous():
        return False  # readers of files reshape what they have read: it is looked at, so that checks of it are known
    return tensor.untyped_storage()._cdata in _marks or weights.is_stand_in(tensor.data_ptr(), _span(tensor))


def _span(tensor):
    """Bytes from a tensor's first number to its last one."""
    return (1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))) * tensor.element_size()


def _contiguous(original, tensor, *args, **kwargs):
    plain = not args and kwargs.get("memory_format") in (None, state.torch.contiguous_format)
    result = _in_order(tensor, tensor.shape) if plain else None
    return original(tensor, *args, **kwargs) if result is None else result


def _reshape(original, tensor, *args, **kwargs):
    changed = original(state.torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"), *args, **kwargs)
    result = None if changed._is_view() else _in_order(tensor, changed.shape)
    return original(tensor, *args, **kwargs) if result is None else result


def _in_order(tensor, shape):
    """A copy of zeros that nobody touched, in memory that nobody touches. None where torch should make it."""
    if tensor.requires_grad and state.torch.is_grad_enabled():
        return None
    return _zeros(shape, tensor.dtype) if _holds_nothing(tensor) else None


def _holds_nothing(tensor):
    ranges = pages.touched(tensor.data_ptr(), _span(tensor))
    return ranges is not None and not pages.total(pages.not_zero(tensor.data_ptr(), ranges))


def _is_zeros(tensor):
    return _is_marked(tensor) and tensor.is_contiguous() and _holds_nothing(tensor)


def _zeros_like(tensor, dtype):
    return _zeros(tensor.shape, dtype)


def _zeros(shape, dtype):
    """Zeros that nobody touched. None where torch should make them."""
    try:
        result = state.torch.empty(shape, dtype=dtype, device="cpu")
    except RuntimeError:
        return None
    dirty = pages.touched(result.data_ptr(), _bytes(result))
    if dirty is None:
        return None
    _wipe(result, dirty)
    _mark(result, False)
    return result


def _copy(original, tensor, source, *args, **kwargs):
    """Copies untouched memory over zeros or over untouched memory without touching either."""
    if type(source) in _methods.kinds and source.shape == tensor.shape and _is_marked(source) and _is_zeroable(tensor) \
            and source.is_contiguous():
        ranges = _written(source)
        dirty = pages.touched(tensor.data_ptr(), _bytes(tensor))
        if ranges is not None and dirty is not None:
            _wipe(tensor, dirty)
            _copy_ranges(tensor.detach(), source, ranges)
            _mark(tensor, _marks.get(source.untyped_storage()._cdata, False))
            return tensor
    return original(tensor, source, *args, **kwargs)


# ---- torch.nn.init ----

def around_initialiser(original):
    """For one that computes on what it has filled: rejection sampling, QR."""

    @functools.wraps(original)
    def initialise(tensor, *args, **kwargs):
        with state.torch.no_grad():
            if isinstance(tensor, state.torch.Tensor) and tensor.dim() > 0 and _is_fillable(tensor):
                _skipped(tensor)
                return tensor
        return original(tensor, *args, **kwargs)

    return initialise
