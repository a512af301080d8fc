# SPDX-License-Identifier: Apache-2.0
"""Optimizers, as they are made and as they update: the sensor.

torch's own global hooks stand before and after each update. Every optimizer's constructor calls one method of the base class,
which wraps step().
"""

from . import events, frames, guard


def install(torch):
    """Called once torch is imported."""
    from torch.optim import optimizer

    if events.update_began.subscribers:
        optimizer.register_optimizer_step_pre_hook(_update_begins)
    optimizer.register_optimizer_step_post_hook(_update_ended)
    _watch_construction(optimizer.Optimizer)


def _watch_construction(cls):
    original = getattr(cls, "_patch_step_function", None)
    if original is None:
        return

    def _patch_step_function(self):
        _constructed(self)
        result = original(self)
        events.optimizer_ready(self)
        return result

    cls._patch_step_function = _patch_step_function


@guard.guarded
def _constructed(optimizer):
    events.optimizer_made(optimizer)


@guard.guarded
def _update_begins(optimizer, args, kwargs):
    events.update_began(optimizer, frames.caller(1))


@guard.guarded
def _update_ended(optimizer, args, kwargs):
    events.update_ended(optimizer, frames.caller(1))
