# SPDX-License-Identifier: Apache-2.0
"""Memory that grows by the same amount with every step, or with every batch of an evaluation, and is not given back.

Watched is what is allocated at the end of each step (or batch): growth is what rose every time, or every k-th time, by a
steady amount. A cache that fills up stops after a while, so a growth over steps is only called one when it went on for
64 steps, or 15 seconds; within an evaluation loop, whose end is known, 16 batches do. Cyclic garbage looks the same until
Python collects it: a collection tells them apart.

A growth over steps that ends later is taken back (step_growth.py).

Once that is certain, the history's windows are kept for some more steps, and a snapshot of several of them is taken.
"""

import gc
import sys
import time

from . import events, guard, history, torchapi
from .state import state

_MAX_PERIOD = 16
_LEAST = 12  # units that a growth has to be seen in,
_TIMES = 6  # and this often
_EARLY = 4  # as often, where an out-of-memory has cut it short
_SURE_AFTER = {"step": 64, "evaluation batch": 16, "request": 16}
_SURE_SECONDS = 15.0
_WHOLE_STEPS = 3  # in the snapshot
_SMALLEST = 4096  # bytes a unit: a list of losses on the device is no growth worth a word
_TOLERANCE = 0.25  # of the mean
_ROUNDING = 1024
_MOST_ROWS = 256
_MOST_COLLECTIONS = 3
_clock = time.monotonic


class Watch:
    """The allocated bytes at the ends of units of one kind."""

    def __init__(self, unit, place=None, of=None):
        self.unit, self.place, self.of = unit, place, of
        self._rows = []  # (number, allocated, time, peak inside the unit or None)
        self._period = 0  # it grows each so many units
        self._run = 0  # units of the growth so far
        self._left = None  # units to go until it is certain, once it is likely
        self._certain = False
        self._collections = 0

    def add(self, number, allocated, peak):
        """A unit is over; `peak` is the allocated peak inside it, or None."""
        if self._certain:
            return
        self._rows.append((number, allocated, _clock(), peak))
        del self._rows[:-_MOST_ROWS]
        self._judge()

    def restart(self):
        """What follows is other work."""
        del self._rows[:]
        self._give_up()

    def may_grow(self):
        """True while a steady growth is seen, or the beginning of one."""
        return self._period > 0 or _is_steady([row[1] for row in self._rows[-_EARLY - 1:]], 1, _EARLY)

    def certain(self):
        """True once it is called a growth."""
        return self._certain

    def document(self):
        """The "growth" of the guest document, or None."""
        period, run = self._period, self._run
        if not period:
            return None
        rows = self._rows[-run - 1:]
        (first, start), (last, end) = rows[0][:2], rows[-1][:2]
        peak = max((row[3] for row in rows[-period:] if row[3] is not None), default=None)
        return {"unit": self.unit, "bytes": round((end - start) / (len(rows) - 1)), "first": first, "last": last,
                "allocated": end, "peak": peak, "of": self.of, "at": self.place}  # fmt: skip

    def cut_short(self):
        """As document(), for a growth that an out-of-memory has ended early."""
        if not self._period:
            values = [row[1] for row in self._rows]
            if _is_steady(values, 1, _EARLY):
                self._period, self._run = 1, _run_of(values, 1, _EARLY)
        return self.document()

    def allocated_in_run(self):
        """(first, last) allocated bytes of the growth."""
        return self._rows[-self._run - 1][1], self._rows[-1][1]

    def pace(self):
        """Bytes a unit of the growth, and in how many units it is seen."""
        start, end = self.allocated_in_run()
        return (end - start) / self._run, max(_LEAST, _TIMES * self._period)

    def withdraw(self):
        """It was none."""
        self._certain = False
        self.restart()

    def _judge(self):
        values = [row[1] for row in self._rows]
        self._period = period = _period_of(values)
        if not period or self._collections >= _MOST_COLLECTIONS:
            self._give_up()
            return
        self._run = _run_of(values, period, max(_LEAST, _TIMES * period))
        if self._left is None:
            if self._is_likely() and not self._was_garbage():
                history.keep_windows(True)
                self._left = _WHOLE_STEPS * period + 1 if self.unit != "evaluation batch" else 0
        else:
            self._left -= 1
        if self._left == 0:
            self._certain = True
            events.memory_piles_up(sys._getframe())
            history.at_growth()
            history.keep_windows(False)

    def _is_likely(self):
        lasted = self._rows[-1][2] - self._rows[-self._run - 1][2]
        return self._run >= _SURE_AFTER[self.unit] or lasted >= _SURE_SECONDS

    def _was_garbage(self):
        if not gc.isenabled():
            return False
        start, end = self.allocated_in_run()
        gc.collect()
        if end - allocated_now() <= (end - start) // 2:
            return False
        self._collections += 1
        self.restart()
        return True

    def _give_up(self):
        if self._left is not None and not self._certain:
            history.keep_windows(False)
            self._left = None
        self._period = self._run = 0


class _Found:
    """What is known of growth in this process."""

    __slots__ = ("watches", "latest")

    def __init__(self):
        self.watches = []  # of what is called a growth
        self.latest = None  # the watch that was told of a unit last


_found = _Found()


@guard.alone
def note(watch, number, allocated, peak, may_end=False):
    """A unit of a watch is over. may_end: what grows may come to its end by itself, so that it is only told once goes_on() was called."""
    _found.latest = watch
    watch.add(number, allocated, peak)
    if watch.certain() and not may_end:
        goes_on(watch)


@guard.alone
def goes_on(watch):
    """A growth that is certain would have gone on: it is told."""
    if watch not in _found.watches:
        _found.watches.append(watch)


@guard.alone
def withdraw(watch):
    """What was called a growth has ended."""
    watch.withdraw()
    _found.watches.remove(watch)


def allocated_now():
    """Allocated bytes of the device that holds most."""
    return max((stats["allocated_bytes"]["all"]["current"] for stats in map(torchapi.stats, state.peaks) if stats),
               default=0)


def document():
    """The "growth" of the guest document, or None. Of several, the one that comes to more."""
    if _found.watches:
        return max((watch.document() for watch in _found.watches), key=_in_all)
    if _found.latest is not None and (state.oom_ended_process or state.open_oom is not None):
        return _found.latest.cut_short()
    return None


def _in_all(found):
    return found["bytes"] * found["of"] if found["of"] is not None else float("inf")


def _period_of(values):
    """The smallest k for which the values rise steadily each k-th time, or 0."""
    for period in range(1, min(_MAX_PERIOD, (len(values) - 1) // 2) + 1):
        if _is_steady(values, period, max(_LEAST, _TIMES * period)):
            return period
    return 0


def _is_steady(values, period, count):
    """True when each of the last `count` values rose by about the same against the one `period` before."""
    if len(values) < count + period:
        return False
    mean = (values[-1] - values[-1 - count]) * period / count
    return mean >= _SMALLEST * period and all(_fits(values, i, period, mean) for i in range(len(values) - count, len(values)))


def _fits(values, i, period, mean):
    rise = values[i] - values[i - period]
    return rise > 0 and abs(rise - mean) <= _TOLERANCE * mean + _ROUNDING


def _run_of(values, period, count):
    """How many units the growth has gone on for, in whole periods; it is known to be steady for the last `count`."""
    mean = (values[-1] - values[-1 - count]) * period / count
    i = len(values) - 1
    while i >= period and _fits(values, i, period, mean):
        i -= 1
    run = len(values) - 1 - i
    return run - run % period
