# SPDX-License-Identifier: Apache-2.0
"""Answers that do not depend on what kernels compute (doc/design/0006-values.md).

    isfinite            zeros are finite: the result of torch.isfinite on a CUDA tensor is filled with True, and so is
                        what .all() makes of it. The real operation runs first, so that memory is the same.
    GradScaler's scale  stays what it was set to, since nothing overflows: pinned in the virtual GPU.

What is filled is known until the next kernel runs, which is when such results are read.
"""

import ctypes
import os

from . import guard, imports, methods
from .state import settings

_MARK = "_tonnage_all_true"
_library = None
_compiling = None  # torch.compiler.is_compiling


def install(torch):
    """Called once torch is imported, with a virtual GPU only."""
    global _compiling
    _compiling = torch.compiler.is_compiling
    methods.put(torch.Tensor, "isfinite", _on_device, _filled)
    methods.put(torch.Tensor, "all", _is_marked, _filled)
    torch.isfinite = _forward(torch, "isfinite")
    torch.all = _forward(torch, "all")
    imports.watch("torch.amp.grad_scaler", guard.guarded(_watch_scaler))


def _on_device(tensor):
    return tensor.is_cuda


def _is_marked(tensor):
    return getattr(tensor, _MARK, False)


def _filled(original, tensor, *args, **kwargs):
    result = original(tensor, *args, **kwargs)
    if not _compiling():  # what is being compiled stays as it was
        _fill(result)
    return result


@guard.guarded
def _fill(result):
    result.fill_(True)
    setattr(result, _MARK, True)


def _forward(torch, name):
    """torch.isfinite(x) as x.isfinite(), for the tensors that concern us; everything else as it was."""
    function = getattr(torch, name)

    def call(input, *args, **kwargs):
        if _compiling():
            return function(input, *args, **kwargs)
        method = getattr(type(input), "__dict__", {}).get(name)
        if isinstance(method, methods.Method) and method.concerns(input):
            return getattr(input, name)(*args, **kwargs)
        return function(input, *args, **kwargs)

    call.__name__ = name
    call.__doc__ = function.__doc__
    call.__wrapped__ = function
    return call


def _watch_scaler(module):
    cls = module.GradScaler
    lazy, load = cls._lazy_init_scale_growth_tracker, cls.load_state_dict

    def _lazy_init_scale_growth_tracker(self, device):
        lazy(self, device)
        _pin_scaler(self, self._init_scale)

    def load_state_dict(self, state_dict):
        load(self, state_dict)
        if getattr(self, "_scale", None) is not None and "scale" in state_dict:
            _pin_scaler(self, state_dict["scale"])

    cls._lazy_init_scale_growth_tracker = _lazy_init_scale_growth_tracker
    load_state_dict.__doc__ = load.__doc__
    cls.load_state_dict = load_state_dict


@guard.guarded
def _pin_scaler(scaler, scale):
    if scaler._scale is not None and scaler._scale.is_cuda:
        _pin(scaler._scale.data_ptr(), ctypes.c_float(scale))


def _pin(address, value):
    global _library
    path = os.path.join(settings.library, "libtonnage-vgpu.so")
    if _library is None and os.path.exists(path):
        _library = ctypes.CDLL(path)
    if _library is not None:
        _library.tn_vgpu_pin_value(ctypes.c_uint64(address), ctypes.byref(value), ctypes.c_uint64(ctypes.sizeof(value)))
