# SPDX-License-Identifier: Apache-2.0
"""The rest of the program, rehearsed: once training has settled, data loaders end their epochs early.

What comes after a loop (evaluation, saving, the next epoch, the program's own end) is then seen within the time limit.
Every epoch gives at least one batch, since programs divide by their number. A training loop ends after one update, an
evaluation loop when its own memory has settled. A loop is only shortened where the code that takes the batches treats a
StopIteration as the end of a loop (consumers.py); programs whose work comes from elsewhere are stopped from outside.

Once a whole round of epochs has brought nothing that was not there before, the remaining rounds tell nothing, but what
comes after the last of them may: they go on, shortened, while that is quick, and are over when it is not.

    epoch   one pass of one iterator
    loop    all epochs at one place of the program
    round   from the start of a training epoch to the start of the next one at the same place

Invariant: nothing is shortened before begin() was called, but evaluation loops of more than 200 batches that have settled.
This part never asks to stop and never writes; settle.py and steps.py do.
"""

import collections
import os
import sys
import time
import weakref

from . import consumers, frames, growth, guard, torchapi, trainers
from .state import settings, state

_QUIET = 8  # batches of an evaluation loop that bring nothing new, until it ends,
_QUIET_AGAIN = 1  # when the loop was gone through in the rehearsal before
_MAX_BATCHES = 200  # of one evaluation loop
_QUIET_SECONDS = 4.0  # without anything new, with a whole round in them, until the rehearsal is over;
_QUIET_SHARE = 0.1  # or this share of the time so far, where that is longer
_TRIFLE = 64 << 10  # bytes that bring nothing new: results that are kept on the device
_RECENT = 4  # steps since the last batch, for the work to come from that loader
_MAX_LOOPS = 256
_MAX_FRAMES = 40
_MAX_TOLD = 40
_clock = time.monotonic

_loops = {}  # the program's place and the functions between it and the loader -> Loop
_epochs = weakref.WeakKeyDictionary()  # iterator -> Epoch
_latest = None  # weak reference to the iterator that gave a batch last
_latest_steps = 0  # steps then
_updates = 0  # of optimizers
_micro_batches = 1  # most batches that one update took, in loops that train

_reason = None  # why training was cut short: "settled", "limit"
_last_seen = None  # what there was when something was new last
_quiet_since = 0.0  # when that was
_repeated = False  # a whole round has brought nothing new
_met = {}  # data sets that gave a batch in the rehearsal, by id
_told = []


Reading = collections.namedtuple("Reading", "allocated allocated_peak reserved_peak volume")


class Loop:
    """One `for` of the program, over all epochs."""

    __slots__ = ("place", "trains", "epochs", "planned", "volumes", "first", "later", "fewest", "most", "seen")

    def __init__(self, place):
        self.place = place  # description of a frame, or None
        self.trains = False
        self.epochs = 0
        self.planned = 0  # batches in all epochs so far, shortened or not; None where that is unknown
        self.volumes = set()
        self.first = None  # (epoch, batches given, batches in all or None) of the first one that was shortened
        self.later = self.fewest = self.most = 0
        self.seen = None  # all that had been seen when its last epoch in the rehearsal began


class Epoch:
    """One pass of an iterator."""

    __slots__ = ("loop", "number", "length", "batches", "updates", "since_update", "updated", "quiet", "reading", "high",
                 "first_step", "watch", "ended", "can_end", "again", "__weakref__")

    def __init__(self, loop, length):
        self.loop = loop
        self.number = loop.epochs
        self.length = length  # batches in all, or None
        self.batches = 0  # given so far
        self.updates = _updates
        self.since_update = 0
        self.updated = False
        self.quiet = 0  # batches that brought nothing new, the last ones
        self.reading = _reading()
        self.high = max(self.reading.allocated_peak, self.reading.reserved_peak)
        self.first_step = state.steps
        self.watch = growth.Watch("evaluation batch", loop.place, length)
        self.ended = self.can_end = False
        self.again = loop.seen is not None  # not the first one in the rehearsal

    def batches_a_step(self):
        """How many batches a step takes, as seen so far."""
        return max(1, round(self.batches / max(1, state.steps - self.first_step)))


@guard.alone
def updated():
    """An optimizer has made an update."""
    global _updates
    _updates += 1


def updates():
    """How many updates optimizers have made."""
    return _updates


def has_loader():
    """True when a data loader has given a batch."""
    return bool(_loops)


@guard.alone
def fetched(iterator, frame, first, new_shape, before):
    """A batch was fetched and not given yet; `first` of its epoch, `before` is the phase until now. True when the epoch
    ends here instead."""
    global _latest, _latest_steps
    epoch = _begin_epoch(iterator, frame) if first or iterator not in _epochs else _epochs[iterator]
    if not first:
        _batch_is_over(epoch, new_shape, before)
    epoch.can_end = settings.watch_settling and consumers.ends_loop(frame.f_back)
    _latest, _latest_steps = weakref.ref(iterator), state.steps
    if _reason is not None:
        _meet(getattr(iterator, "_dataset", None))
    if epoch.can_end and _is_over(epoch, frame):
        return True
    epoch.batches += 1
    return False


@guard.alone
def possible():
    """True when the program's work comes from a loader whose epoch can be ended."""
    epoch = current_epoch()
    return epoch is not None and epoch.can_end and not _distributed()


@guard.alone
def begin(reason):
    """From now on epochs end early."""
    global _reason, _last_seen, _quiet_since
    _reason = reason
    _last_seen, _quiet_since = _all_seen(), _clock()
    epoch = current_epoch()
    if epoch is not None:
        epoch.loop.seen = _last_seen
        _meet(getattr(_latest(), "_dataset", None))


def reason():
    """Why training was cut short ("settled", "limit"); None before that."""
    return _reason


def has_met(dataset):
    """True for a data set that has given a batch in the rehearsal."""
    return _reason is not None and id(dataset) in _met


@guard.alone
def over():
    """True when the remaining rounds would take long and tell nothing: one has repeated what was there before."""
    if not _repeated:
        return False
    now = _clock()
    return now - _quiet_since >= max(_QUIET_SECONDS, _QUIET_SHARE * (now - (state.last_import or state.started)))


def shortened():
    """True when an epoch was ended early."""
    return any(loop.first is not None for loop in _loops.values())


def why_not(frame):
    """Why the program's end was not rehearsed, in words; `frame` is the one that made a step."""
    place = frames.place(frame)
    where = _short(frames.describe(place)) if place is not None else "an unknown place"
    epoch = current_epoch()
    if epoch is None:
        return "the loop around %s has no data loader" % where
    if _distributed():
        return "the ranks of a job are not shortened"
    return "the batches at %s are taken one by one" % (_short(epoch.loop.place) if epoch.loop.place else where)


def tell(sentence):
    """Adds a line about what was not seen."""
    if sentence not in _told and len(_told) < _MAX_TOLD:
        _told.append(sentence)


@guard.alone
def broke(error):
    """The program failed with this exception (as the document describes it), and not for want of memory."""
    if shortened():
        at = " at %s" % _short(error["at"]) if error["at"] else ""
        text = ": %s" % error["message"] if error["message"] else ""
        state.rehearsal_broken = "%s%s after data loaders had ended early%s" % (error["type"], at, text)


@guard.alone
def exited(status):
    """The program ends itself with a status other than 0, and not for want of memory."""
    if shortened() and state.rehearsal_broken is None:
        state.rehearsal_broken = "the program ended with status %s after data loaders had ended early" % (status,)


def current_epoch():
    """The Epoch that the program's work comes from, or None."""
    iterator = _latest() if _latest is not None else None
    if iterator is None or state.steps - _latest_steps > _RECENT:
        return None
    return _epochs.get(iterator)


def not_seen():
    """Sentences for a person: what was shortened or left out."""
    lines = []
    for loop in _loops.values():
        if loop.first is not None and len(lines) < _MAX_TOLD:
            lines.extend(_sentences(loop))
    return lines + _told


# ---- epochs ----


def _begin_epoch(iterator, frame):
    place = frames.place(frame.f_back)
    key = _way(frame.f_back, place)
    loop = _loops.get(key)
    if loop is None:
        loop = Loop(frames.describe(place) if place is not None else None)
        if len(_loops) < _MAX_LOOPS:
            _loops[key] = loop
    loop.epochs += 1
    length = _length(iterator)
    loop.planned = loop.planned + length if None not in (loop.planned, length) else None
    epoch = _epochs[iterator] = Epoch(loop, length)
    if _reason is not None:
        _look_for_news(loop)
    return epoch


def _look_for_news(loop):
    """An epoch begins: what has the last round brought?"""
    global _last_seen, _quiet_since, _repeated
    seen = _all_seen()
    if seen != _last_seen:
        _last_seen, _quiet_since, _repeated = seen, _clock(), False
    elif seen == loop.seen and (loop.trains or not _updates_possible()):
        _repeated = True
    loop.seen = seen


def _meet(dataset):
    if len(_met) < _MAX_LOOPS:
        _met[id(dataset)] = dataset  # kept, so that its id stays its own


def _way(frame, place):
    """How a loader was come to: trainers train and evaluate at one line of the program."""
    way = [(place.f_code.co_filename, place.f_lineno)] if place is not None else []
    while frame is not place and len(way) < _MAX_FRAMES:
        way.append(id(frame.f_code))
        frame = frame.f_back
    return tuple(way)


def _length(iterator):
    try:
        return len(iterator)
    except Exception:  # a sampler of the program's own
        return None


def _batch_is_over(epoch, new_shape, before):
    """What became of the last batch, as the next one is fetched."""
    global _micro_batches
    epoch.since_update += 1
    loop = epoch.loop
    if epoch.updates != _updates:
        epoch.updates = _updates
        epoch.updated = loop.trains = True
        _micro_batches = max(_micro_batches, epoch.since_update)
        epoch.since_update = 0
        epoch.quiet = 0
        return
    if before == "backward":
        loop.trains = True
    _look_at_memory(epoch, new_shape)


def _look_at_memory(epoch, new_shape):
    before = epoch.reading
    now = epoch.reading = _reading()
    used = (now.volume - before.volume) // _TRIFLE
    grew = now.allocated_peak > before.allocated_peak
    new = new_shape or max(now.allocated_peak, now.reserved_peak) > epoch.high + _TRIFLE
    if new:
        epoch.high = max(now.allocated_peak, now.reserved_peak)
    new = new or epoch.loop.volumes.isdisjoint((used - 1, used, used + 1))
    epoch.loop.volumes.add(used)
    epoch.quiet = 0 if new else epoch.quiet + 1
    if not epoch.loop.trains and _updates:
        growth.note(epoch.watch, epoch.batches, now.allocated, now.allocated_peak if grew else None)
        if epoch.watch.may_grow():
            epoch.quiet = 0


def _reading():
    """What the allocators say now; bytes of the device that has most, but all that was ever asked for."""
    rows = [stats for stats in map(torchapi.stats, state.peaks) if stats]
    allocated = [row["allocated_bytes"]["all"] for row in rows]
    return Reading(
        max((row["current"] for row in allocated), default=0),
        max((row["peak"] for row in allocated), default=0),
        max((row["reserved_bytes"]["all"]["peak"] for row in rows), default=0),
        sum(row.get("requested_bytes", {}).get("all", {}).get("allocated", 0) for row in rows),
    )


def _is_over(epoch, frame):
    """True when the epoch ends now."""
    if epoch.ended:
        return True
    if _reason is None:
        if _endless_evaluation(epoch):
            return _end(epoch)
        return False
    planned = trainers.end_with_this_batch(frame)
    if planned is not None:
        epoch.length = planned
        _note_end(epoch, epoch.batches + 1)
        return False
    if epoch.batches and _has_shown_all(epoch):
        return _end(epoch)
    return False


def _has_shown_all(epoch):
    if epoch.loop.trains:
        return epoch.updated
    if epoch.watch.certain() or epoch.batches >= _MAX_BATCHES:
        return True
    return epoch.quiet >= (_QUIET_AGAIN if epoch.again else _QUIET) and (epoch.batches > 2 * _micro_batches or not state.torch.is_grad_enabled())


def _endless_evaluation(epoch):
    """An evaluation before training has settled, which would take all the time."""
    return (_updates_possible() and not epoch.loop.trains and not state.torch.is_grad_enabled()
            and epoch.batches >= _MAX_BATCHES and (epoch.quiet >= _QUIET or epoch.watch.certain()))


def _updates_possible():
    from . import steps

    return steps.trains()


def _end(epoch):
    epoch.ended = True
    _note_end(epoch, epoch.batches)
    return True


def _note_end(epoch, given):
    """An epoch ends after so many batches."""
    loop = epoch.loop
    if epoch.length is not None and given >= epoch.length:
        return  # nothing is left out
    if loop.first is None:
        loop.first = (epoch.number, given, epoch.length)
    else:
        loop.later += 1
        loop.fewest = min(loop.fewest or given, given)
        loop.most = max(loop.most, given)
    if state.stopped is None:
        state.stopped = _reason


def _all_seen():
    """Changes when the program did something for the first time."""
    now = _reading()  # the peaks of the devices were read at the last step only
    allocated = max([now.allocated_peak, *(device.allocated_peak for device in state.peaks.values())])
    reserved = max([now.reserved_peak, *(device.reserved_peak for device in state.peaks.values())])
    return len(_loops), len(state.regions), len(state.shapes), allocated, reserved


def _distributed():
    distributed = sys.modules.get("torch.distributed")
    try:
        return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1
    except Exception:
        return False


# ---- words ----


def _sentences(loop):
    where = _short(loop.place) if loop.place else "a data loader"
    if _updates and not loop.trains:
        where += " (evaluation)"
    number, given, length = loop.first
    if length is not None:
        yield "%s: %s of the %s batches of epoch %d" % (where, _count(length - given), _count(length), number)
    else:
        yield "%s: everything after batch %s of epoch %d" % (where, _count(given), number)
    if loop.later:
        yield "%s: all but the first %s of %s" % (where, _batches(loop.fewest, loop.most), _epochs_after(loop.later))


def _batches(fewest, most):
    if most == 1:
        return "batch"
    return "%s batches" % (_count(most) if fewest == most else "%s to %s" % (_count(fewest), _count(most)))


def _epochs_after(count):
    return "each of the next %s epochs" % _count(count) if count > 1 else "the next epoch"


def _short(place):
    name = place["file"]
    folder = frames.working_folder()
    if folder and name.startswith(folder + os.sep):
        name = name[len(folder) + 1:]
    return "%s:%d" % (name, place["line"])


def _count(number):
    return "{:,}".format(number)
