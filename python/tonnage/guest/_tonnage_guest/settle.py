# SPDX-License-Identifier: Apache-2.0
"""When to ask the supervisor to end the program, and asking.

`auto`: memory has settled when neither the allocated nor the reserved peak grew, and no input brought anything new, for
max(8, twice the step of the last new peak, at most 50) steps; else after 200 steps, or TONNAGE_SECONDS after the
imports. `--steps N`: after N steps. `all`: never.

Everything is flushed before. The supervisor then ends the processes; if it does not within ten seconds, the program
goes on and is not asked about again.
"""

import sys
import time

from . import ledger, peaks, reads, record
from .state import settings, state

_MAX_STEPS = 200
_MIN_WINDOW, _MAX_WINDOW = 8, 50
_PATIENCE = 10.0
_sleep, _clock = time.sleep, time.monotonic

_last_peak = 0  # the step that set the last new peak
_last_new = 0  # the step that brought the last new input
_asked = False


def restart():
    """Counting starts again (another unit of steps)."""
    global _last_peak, _last_new
    _last_peak = _last_new = 0


def after_step(grew, new_input, may_stop):
    """Judges after a step. may_stop is false where the program is in the middle of something that still grows."""
    global _last_peak, _last_new
    if grew:
        _last_peak = state.steps
    if new_input:
        _last_new = state.steps
    reason = _reason(may_stop)
    if reason is not None and not _asked:
        _stop(reason)


def _reason(may_stop):
    if settings.step_limit is not None:
        return "limit" if state.steps >= settings.step_limit else None
    if not settings.watch_settling:
        return None
    if _clock() - (state.last_import or state.started) >= settings.seconds:
        return "limit"
    if not may_stop:
        return None
    if settled(state.steps, _last_peak, _last_new):
        return "settled"
    return "limit" if state.steps >= _MAX_STEPS else None


def settled(steps, last_peak, last_new):
    """True when nothing has grown and nothing new has come for long enough."""
    window = max(_MIN_WINDOW, min(2 * last_peak, _MAX_WINDOW))
    return steps - last_peak >= window and steps - last_new >= window


def _stop(reason):
    global _asked
    _asked = True
    state.stopped = reason
    flush_program()
    peaks.read(everywhere=True)
    ledger.progress(state.steps, *peaks.highest())
    reads.finish()
    record.write_now()
    if ledger.ask_to_stop(ledger.SETTLED if reason == "settled" else ledger.LIMIT):
        until = _clock() + _PATIENCE
        while _clock() < until:
            _sleep(0.01)
    state.stopped = None
    record.write_now()


def flush_program():
    """What the program printed so far reaches its readers: it is about to be ended from outside."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
