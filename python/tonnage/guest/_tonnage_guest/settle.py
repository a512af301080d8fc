# SPDX-License-Identifier: Apache-2.0
"""When training has been seen, and what follows: the rest is fast-forwarded, or the supervisor is asked to end the program.

`auto`: memory has settled when nothing grew for max(8, twice the step of the last growth, at most 50) steps: neither the peak of what
tensors asked for (what is allocated for it differs by which cached block was free), nor what of it stays at a step's end (by more than
a trifle), nor the reserved peak (on an unlimited card that does not count: nothing there makes PyTorch give back what it only caches); and no input brought anything new for
max(8, twice the step of the last new one, at most 50, or 200 where new ones keep coming) steps, and 64 where inputs
differ from step to step. In a trial of `fix` four such steps are enough where nothing came later than it did in the unchanged program, which
has settled (TONNAGE_LAST_NEWS), and half a per cent of what is reserved is no growth; one that began before that was known goes on until it is. Passes without an optimizer settle where they build no graph, or once a backward pass has come: others may be a
warm-up. It has settled, too, when it is certain that it grows by the same amount every step (growth.py). Else after 200 steps, or
TONNAGE_SECONDS after the imports; several programs on one card wait for each other, but for the time. Compiling is not counted. Where the work comes from data loaders, their epochs end early from then on
(fast_forward.py; for the sake of that it begins when three quarters of the time are gone), else the program is stopped.
`--steps N`: stopped after N steps. `N updates` (Tonnage's own runs say it): after N updates of an optimizer; passes without one
settle as under `auto`. `all`: never.

Everything is flushed before a stop. The supervisor then ends the processes; if it does not within ten seconds, the
program goes on and is not asked about again.
"""

import sys
import time

from . import ahead, epochs, fast_forward, guard, history, ledger, news, peaks, ranks, reads, record, shapes, step_growth, torchapi, work
from .state import settings, state

_MAX_STEPS = 200
_MIN_WINDOW, _MAX_WINDOW = 8, 50
_TRIAL_WINDOW = 4  # in a trial of a program that is known to settle
_EARLY_STEP = 2  # the first with the optimizer's state: where what is known is told early
_MANY_INPUTS = 6  # steps that brought something new: more may come
_VARYING_WINDOW = 64  # steps without a new input, where inputs differ from step to step
_FAST_FORWARD_SHARE = 0.75  # of the time: what is left then is kept for the rest of the program
_PATIENCE = 10.0
_TRIFLE = 64 << 10  # bytes: losses that are kept on the device
_CACHE_TRIFLE = 0.005  # of what is reserved: a cache that goes on growing so little, in a trial of a program that is known to settle
_LEVELS = (lambda device: device.requested_peak, lambda device: device.reserved_peak, lambda device: device.requested)
_RESERVED = 1  # of them
_sleep, _clock = time.sleep, time.monotonic


class _Steps:
    """What the steps so far brought."""

    __slots__ = ("levels", "last_peak", "last_new", "new_inputs", "asked", "shown", "settled_after", "told_early")

    def __init__(self):
        self.levels = [0, 0, 0]
        self.asked = False  # the supervisor was asked to end the program
        self.shown = None  # the last peak that stands in the process's file
        self.told_early = False
        self.restart()

    def restart(self):
        self.last_peak = 0  # the step that grew last
        self.last_new = 0  # the step that brought the last new input
        self.new_inputs = 0
        self.settled_after = None  # the step that brought something last, once memory has settled or the program has ended


_steps = _Steps()


@guard.guarded
def restart():
    """Counting starts again (another unit of steps)."""
    _steps.restart()


@guard.guarded
def step_ended(step):
    """Judges after a step."""
    news.look()
    if _grew():
        _steps.last_peak = state.steps
    if step.new_input:
        _steps.last_new = state.steps
        _steps.new_inputs += 1
    if state.fast_forward is not None:
        after_batch()
        return
    if settings.tells_early and step.may_stop and not _steps.told_early and _has_shown_much():
        _tell_early()
    if settings.requests:
        return  # who sends them asks (has_settled), and ends the server
    reason = _reason(step.may_stop)
    if reason is None or _steps.asked:
        return
    if _must_save_yet():
        record.write_sometimes()
        return
    fast_forwards = settings.watch_settling and not settings.updates_only
    if fast_forwards and step.may_stop and fast_forward.possible() and _elapsed() < settings.seconds:
        _tell_of_shapes("when the loops were cut short")
        fast_forward.begin(reason)
    elif _cells_follow():
        state.turns_over = reason
        record.write_sometimes()
    elif settings.news_waits and _elapsed() < settings.seconds:
        record.write_sometimes()
    elif (reason == "limit" and not _beside_others()) or _all_settled():
        _stop(reason)
    else:
        record.write_sometimes()  # the last rank, or program, to settle stops all


@guard.guarded
def batch_begins(batch):
    """A loader hands a batch out."""
    after_batch()


@guard.guarded
def call_ended(args, kwargs, frame):
    """A module was called from outside: where no step comes, this is where the time is looked at."""
    steps_come = state.steps > 0 and state.phase != "evaluation"
    if steps_come or _steps.asked or settings.requests or not settings.watch_settling or state.fast_forward is not None:
        return
    if _elapsed() >= settings.seconds:
        _stop("limit")


def after_batch():
    """Ends a fast-forward that has taken long enough."""
    news.look()
    if state.fast_forward is None or _steps.asked:
        return
    if _elapsed() >= settings.seconds or (not _cells_follow() and not _will_save() and fast_forward.over()):
        _stop(state.fast_forward)


def _beside_others():
    """True where other programs share the card and there is time: this one has made its steps, and holds what it holds."""
    return settings.program is not None and _elapsed() < settings.seconds


def _all_settled():
    """Says that this process has settled; True when all of the run have. Another program may then end the run at any moment, so what
    this one knows is written before."""
    if settings.program is not None and _steps.shown != _steps.last_peak:
        _steps.shown = _steps.last_peak
        history.finish()
        flush_changes()
        record.write_now()
    return ranks.all_settled()


def _must_save_yet():
    """True where another command needs what this one saves, it has saved nothing, and there is time. Where loops are cut short
    the program comes to its end, and saves there."""
    waits = settings.followed and not state.saved and settings.step_limit is None and _elapsed() < settings.seconds
    return waits and not fast_forward.possible()


def _will_save():
    """The same once loops are cut short."""
    return settings.followed and not state.saved


@guard.guarded
def file_opened(phase, frame):
    """torch writes or reads a file."""
    state.saved = state.saved or phase == "save"


def _cells_follow():
    """True in a notebook while there is time: a cell whose training has settled is not the last."""
    return state.cell is not None and settings.step_limit is None and _elapsed() < settings.seconds


def _grew():
    """True when a level of memory is higher than it was when this last said so, and not by a trifle."""
    devices = state.peaks.values()
    levels = [max((level(device) for device in devices), default=0) for level in _LEVELS]
    if peaks.cards_are_unlimited():
        levels[_RESERVED] = 0
    trifles = [_TRIFLE] * len(levels)
    if settings.news_waits or settings.news_step is not None:
        trifles[_RESERVED] = max(_TRIFLE, int(_steps.levels[_RESERVED] * _CACHE_TRIFLE))
    if not any(now > then + trifle * (then > 0) for now, then, trifle in zip(levels, _steps.levels, trifles)):
        return False
    _steps.levels = [max(pair) for pair in zip(levels, _steps.levels)]
    return True


def _reason(may_stop):
    if settings.step_limit is not None:
        if state.unit == "optimizer" or not settings.updates_only:
            return "limit" if state.steps >= settings.step_limit else None
    if not settings.watch_settling:
        return None
    if _elapsed() >= settings.seconds * (_FAST_FORWARD_SHARE if fast_forward.possible() else 1):
        return "limit"
    if not may_stop:
        return None
    quiet = settled(state.steps, _steps.last_peak, _steps.last_new, _steps.new_inputs) and not _may_vary_on() and not _may_train_yet()
    if quiet:
        _note_last_news()
    if step_growth.certain() or quiet:
        return "settled"
    return "limit" if state.steps >= _MAX_STEPS else None


def has_settled():
    """For requests: True when nothing has grown and nothing new has come, or when it is certain that it grows."""
    return step_growth.certain() or (
        settled(state.steps, _steps.last_peak, _steps.last_new, _steps.new_inputs) and not _may_vary_on())


def _note_last_news():
    if _steps.settled_after is None and _steps.new_inputs <= _MANY_INPUTS and not shapes.vary():
        _steps.settled_after = max(_steps.last_peak, _steps.last_new)
        ledger.tell_settled(_steps.settled_after)


@guard.alone
def program_ended():
    """The program comes to its own end: where nothing was left out but of evaluations that settled, all its steps are known, settled or not.
    One without steps says of its first what it would say of them."""
    if state.fast_forward is not None:
        return
    if state.steps:
        _note_last_news()
    elif state.armed and max(len(state.shapes), epochs.most_volumes()) <= _MANY_INPUTS:
        _steps.settled_after = 1


def last_news():
    """The step that brought something new last; None where it is not known to be the last, or inputs differ from step to step."""
    return _steps.settled_after


def settled(steps, last_peak, last_new, new_inputs=0):
    """True when nothing has grown and nothing new has come for long enough."""
    if settings.news_step is not None and max(last_peak, last_new) <= settings.news_step:
        return steps >= settings.news_step + _TRIAL_WINDOW
    longest = _MAX_STEPS if new_inputs > _MANY_INPUTS else _MAX_WINDOW
    return (steps - last_peak >= max(_MIN_WINDOW, min(2 * last_peak, _MAX_WINDOW))
            and steps - last_new >= max(_MIN_WINDOW, min(2 * last_new, longest)))


def _has_shown_much():
    """True when whoever waits for this run can begin with what is known."""
    return state.steps >= _EARLY_STEP and not _may_train_yet()


def _may_vary_on():
    return state.steps - _steps.last_new < _VARYING_WINDOW and shapes.vary()


def _may_train_yet():
    """True where passes build graphs and no backward pass has come: they may be a warm-up."""
    return state.unit == "forward" and state.backwards == 0 and state.torch.is_grad_enabled()


def _elapsed():
    return _clock() - (state.last_import or state.started) - ledger.compiled()


def _tell_of_shapes(when):
    if _steps.new_inputs > _MANY_INPUTS and state.steps - _steps.last_new < max(_MIN_WINDOW, _steps.last_new):
        fast_forward.tell("shapes were still changing %s (%s in %s steps)" % (when, shapes.in_words(), _count(state.steps)))
    elif shapes.vary():
        fast_forward.tell("shapes differ from step to step: a larger one may come later (%s in %s steps, the last new one in "
                      "step %s)" % (shapes.in_words(), _count(state.steps), _count(_steps.last_new)))


def _tell_of_rest(reason):
    where = "everything after step %s" % _count(state.steps)
    if settings.step_limit is not None:
        fast_forward.tell(where)
    elif state.fast_forward is not None:
        fast_forward.tell("%s (its epochs only repeated what had been seen, so the run was ended)" % where)
    elif _elapsed() >= settings.seconds:
        fast_forward.tell("%s (the time limit was reached)" % where)
    else:
        fast_forward.tell("%s (%s)" % (where, fast_forward.why_not(sys._getframe(1))))
    if settings.followed and not state.saved:
        fast_forward.tell("what the program would have saved later: nothing had been saved when it was stopped, so the next "
                          "command finds no checkpoint of it")
    if state.fast_forward is None:
        _tell_of_shapes("when the run was stopped")


def _count(number):
    return "{:,}".format(number)


def _stop(reason):
    _steps.asked = True
    before, state.stopped = state.stopped, reason
    _tell_of_rest(reason)
    flush_program()
    ahead.finish()
    _write_all()
    if ledger.ask_to_stop(ledger.SETTLED if reason == "settled" else ledger.LIMIT):
        until = _clock() + _PATIENCE
        while _clock() < until:
            _sleep(0.01)
    state.stopped = before
    record.write_now()


def _tell_early():
    """Writes what would stand there if the program were stopped now."""
    _steps.told_early = True
    before, state.stopped = state.stopped, "settled"
    _write_all()
    state.stopped = before
    ledger.tell_early()


def _write_all():
    history.finish()
    peaks.read(everywhere=True)
    peaks.tell_ledger()
    guard.alone(reads.finish)()
    work.finish()
    flush_changes()
    record.write_now()


def flush_changes():
    """What the changes that are tried have to tell: they write at the program's end, which does not come."""
    results = sys.modules.get("_tonnage_changes.results")
    if results is not None:
        results.finish()


def flush_program():
    """What the program printed so far reaches its readers: it is about to be ended from outside."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
