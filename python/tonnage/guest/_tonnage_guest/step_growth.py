# SPDX-License-Identifier: Apache-2.0
"""Whether memory grows with every step (growth.py), whether that goes on over epochs, and whether it ends after all: what a buffer of
a fixed number of entries keeps stops growing once it is full. That is believed only of a growth that was seen to go on after it
was called one, and then not: epochs that are cut short may leave out what grows.
"""

from . import epochs, growth, guard
from .state import state


class _Steps:
    """The growth of steps, and the epoch that it was seen in."""

    __slots__ = ("watch", "volume_of_step", "volume", "high", "epoch", "batches_a_step", "goes_on",
                 "later", "went_on")  # fmt: skip

    def __init__(self):
        self.watch = growth.Watch("step")
        self.volume_of_step = self.volume = self.high = 0
        self.epoch = None
        self.batches_a_step = 1
        self.goes_on = None  # whether it goes on in the next epoch of the same loop
        self.later = []  # allocated at the ends of the last steps since it was called a growth
        self.went_on = False  # since then


_steps = _Steps()


@guard.guarded
def step_ended(step):
    """Its device readings are there. Where passes are the steps, only those that asked for the same bytes are compared: a
    cache that is copied as it grows asks for more each time."""
    if not step.may_stop:
        return
    total = sum(device.requested_ever for device in state.peaks.values())
    used, _steps.volume = total - _steps.volume, total
    if step.unit == "forward" and used != _steps.volume_of_step:
        _steps.watch.restart()
    _steps.volume_of_step = used
    device = max(state.peaks.values(), key=lambda found: found.allocated, default=None)
    if device is None:
        return
    if step.unit == "request":
        _steps.watch.unit = "request"
    if _steps.watch.certain():
        _look_again(device.allocated)
        if _has_ended(device.allocated):
            growth.withdraw(_steps.watch)
            _steps.__init__()
        return
    peak, _steps.high = device.allocated_peak if device.allocated_peak > _steps.high else None, device.allocated_peak
    growth.note(_steps.watch, state.steps, device.allocated, peak)
    if _steps.watch.certain():
        _place_steps()


@guard.guarded
def restart():
    """Counting starts again (another unit of steps)."""
    _steps.watch.restart()


def certain():
    """True once steps are known to grow."""
    return _steps.watch.certain()


@guard.alone
def finish():
    """The program comes to its own end: what all its epochs would have come to is known now."""
    if _steps.watch.certain() and _steps.goes_on and _steps.epoch.loop.planned is not None:
        before = (_steps.epoch.number - 1) * (_steps.epoch.length or 0)
        _steps.watch.of = _last_step(_steps.epoch.loop.planned - before)


def _place_steps():
    epoch = _steps.epoch = epochs.current()
    if epoch is not None:
        _steps.batches_a_step = epoch.batches_a_step()
        _steps.watch.place = epoch.loop.place
        _steps.watch.of = _last_step(epoch.length) if epoch.length is not None else None


def _last_step(batches):
    """The number of the step that takes the last of so many batches, from the epoch in which growth was seen on."""
    return _steps.epoch.first_step + -(-batches // _steps.batches_a_step)


def _look_again(allocated):
    """Where a later epoch begins with what has grown before, the growth does not end with an epoch."""
    now, then = epochs.current(), _steps.epoch
    if _steps.goes_on is None and None not in (then, now) and now.loop is then.loop and now.number > then.number:
        start, end = _steps.watch.allocated_in_run()
        _steps.goes_on = allocated > (start + end) // 2
        if _steps.goes_on:
            _steps.watch.of = None


def _has_ended(allocated):
    pace, least = _steps.watch.pace()
    _steps.later.append(allocated)
    del _steps.later[:-least - 1]
    if len(_steps.later) <= least:
        return False
    grows = _steps.later[-1] - _steps.later[0] > pace * least / 2
    ended = _steps.went_on and not grows
    _steps.went_on = _steps.went_on or grows
    return ended
