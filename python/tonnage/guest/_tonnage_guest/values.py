# SPDX-License-Identifier: Apache-2.0
"""Answers that do not depend on what kernels compute (doc/design/0006-values.md).

    GradScaler's scale  stays what it was set to, since nothing overflows: pinned in the virtual GPU. For the same
                        reason no gradient is found to be infinite, and no step is skipped.
"""

import ctypes

from . import guard, virtual


def around_lazy_scale(lazy):
    """For the method that makes the scale when it is wanted first."""

    def _lazy_init_scale_growth_tracker(self, device):
        lazy(self, device)
        _pin_scaler(self, self._init_scale)

    return _lazy_init_scale_growth_tracker


def around_load(load):
    """For the method that takes the scale out of a checkpoint."""

    def load_state_dict(self, state_dict):
        load(self, state_dict)
        if getattr(self, "_scale", None) is not None and "scale" in state_dict:
            _pin_scaler(self, state_dict["scale"])

    load_state_dict.__doc__ = load.__doc__
    return load_state_dict


def around_step(step):
    """For the method that decides whether an update is made."""

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        _nothing_overflows(optimizer_state)
        return step(self, optimizer, optimizer_state, *args, **kwargs)

    return _maybe_opt_step


@guard.guarded
def _nothing_overflows(optimizer_state):
    """What the scaler is about to read: known until the next kernel, so it takes the step."""
    for found in optimizer_state["found_inf_per_device"].values():
        if found.is_cuda:
            found.fill_(0.0)


@guard.guarded
def _pin_scaler(scaler, scale):
    if scaler._scale is not None and scaler._scale.is_cuda:
        _pin(scaler._scale.data_ptr(), ctypes.c_float(scale))


def _pin(address, value):
    library = virtual.library()
    if library is not None:
        library.tn_vgpu_pin_value(ctypes.c_uint64(address), ctypes.byref(value), ctypes.c_uint64(ctypes.sizeof(value)))
