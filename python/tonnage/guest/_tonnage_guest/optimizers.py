# SPDX-License-Identifier: Apache-2.0
"""Optimizers, as they are made and as they update: the sensor.

torch's own global hooks stand before and after each update. Every optimizer's constructor calls one method of the base class,
which wraps step().
"""

from . import events, frames, guard


def watch_update_begins(module, name):
    """Registers torch's own hook."""
    getattr(module, name)(_update_begins)


def watch_update_ends(module, name):
    """Registers torch's own hook."""
    getattr(module, name)(_update_ended)


def around_construction(original):
    """For the method that every optimizer's constructor calls."""

    def _patch_step_function(self):
        _constructed(self)
        result = original(self)
        events.optimizer_ready(self)
        return result

    return _patch_step_function


@guard.guarded
def _constructed(optimizer):
    events.optimizer_made(optimizer)


@guard.guarded
def _update_begins(optimizer, args, kwargs):
    events.update_began(optimizer, frames.caller(1))


@guard.guarded
def _update_ended(optimizer, args, kwargs):
    events.update_ended(optimizer, frames.caller(1))
