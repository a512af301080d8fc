# SPDX-License-Identifier: Apache-2.0
"""Data loaders' epochs: what is known of each loop of the program over a loader. Only fast_forward.py ends one.

    epoch   one pass of one iterator
    loop    all epochs at one place of the program
"""

import collections
import time
import weakref

from . import frames, growth, origin, peaks, torchapi
from .state import state

_TRIFLE = 64 << 10  # bytes that bring nothing new: results that are kept on the device
_RECENT = 4  # steps since the last batch, for the work to come from that loader
_MOST_UPDATES = 8  # of an epoch in a fast-forward
_MAX_LOOPS = 256
_MAX_FRAMES = 40
_clock = time.monotonic

loops = {}  # the program's place and the functions between it and the loader -> Loop
_epochs = weakref.WeakKeyDictionary()  # iterator -> Epoch


class Reading(collections.namedtuple("Reading", "allocated allocated_peak requested_peak reserved_peak volume")):
    """Bytes, as of the allocators."""

    __slots__ = ()

    def highest(self):
        """The level that something new would raise."""
        return max(self.requested_peak, self.reserved_peak)


class _Latest:
    """The batch that was handed out last."""

    __slots__ = ("iterator", "steps", "micro_batches")

    def __init__(self):
        self.iterator = None  # weak reference to what gave it
        self.steps = 0  # steps then
        self.micro_batches = 1  # most batches that one update took, in loops that train


_latest = _Latest()


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
        self.seen = None  # all that had been seen when its last epoch in the fast-forward began

    def note_end(self, epoch, given):
        """An epoch ends after so many batches. False where that leaves nothing out."""
        if epoch.length is not None and given >= epoch.length:
            return False
        if self.first is None:
            self.first = (epoch.number, given, epoch.length)
        else:
            self.later += 1
            self.fewest = min(self.fewest or given, given)
            self.most = max(self.most, given)
        return True


class Epoch:
    """One pass of an iterator."""

    __slots__ = ("loop", "number", "length", "batches", "updates", "since_update", "updated", "made", "repeated", "quiet", "reading", "high",
                 "first_step", "watch", "began", "ended", "can_end", "again", "__weakref__")

    def __init__(self, loop, length):
        self.loop = loop
        self.number = loop.epochs
        self.length = length  # batches in all, or None
        self.batches = 0  # given so far
        self.updates = state.updates
        self.since_update = 0
        self.updated = False
        self.made = 0  # updates
        self.repeated = False  # an update after the first has brought nothing new, or they have brought something often enough
        self.quiet = 0  # batches that brought nothing new, the last ones
        self.reading = read()
        self.high = self.reading.highest()
        self.first_step = state.steps
        self.watch = growth.Watch("evaluation batch", loop.place, length)
        self.began = _clock()
        self.ended = self.can_end = False
        self.again = loop.seen is not None  # not the first one in the fast-forward

    def batches_a_step(self):
        """How many batches a step takes, as seen so far."""
        return max(1, round(self.batches / max(1, state.steps - self.first_step)))

    def seconds_left(self):
        """As long as it has taken so far, where its length is unknown."""
        so_far = _clock() - self.began
        return so_far if self.length is None else so_far / max(1, self.batches) * (self.length - self.batches)

    def batch_is_over(self, new_shape, phase):
        """What became of the last batch, as the next one is fetched; it was in this phase last."""
        self.since_update += 1
        if self.updates != state.updates:
            self.updates = state.updates
            new = self._is_new(new_shape)
            self.made += 1
            self.repeated = self.made > 1 and not new or self.made >= _MOST_UPDATES
            self.updated = self.loop.trains = True
            _latest.micro_batches = max(_latest.micro_batches, self.since_update)
            self.since_update = 0
            self.quiet = 0
            return
        if phase == "backward":
            self.loop.trains = True
        self._look_at_memory(new_shape)

    def _is_new(self, new_shape):
        now = self.reading = read()
        new = new_shape or now.highest() > self.high + _TRIFLE
        if new:
            self.high = now.highest()
        return new

    def _look_at_memory(self, new_shape):
        before, new = self.reading, self._is_new(new_shape)
        now = self.reading
        used = (now.volume - before.volume) // _TRIFLE
        grew = now.allocated_peak > before.allocated_peak
        new = new or self.loop.volumes.isdisjoint((used - 1, used, used + 1))
        self.loop.volumes.add(used)
        self.quiet = 0 if new else self.quiet + 1
        before_training = state.trains and not state.backwards  # where nothing trains, steps tell (step_growth.py)
        if not self.loop.trains and (state.updates or before_training):
            peak = now.allocated_peak if grew else None
            growth.note(self.watch, self.batches, now.allocated, peak, may_end=not state.updates)
            if self.watch.may_grow():
                self.quiet = 0


def of(iterator):
    """The Epoch of an iterator that has one, or None."""
    return _epochs.get(iterator)


def begin(iterator, frame):
    """The Epoch of an iterator whose first batch was fetched in `frame`."""
    place = frames.place(frame.f_back)
    key = _way(frame.f_back, place)
    loop = loops.get(key)
    if loop is None:
        loop = Loop(frames.describe(place) if place is not None else None)
        if len(loops) < _MAX_LOOPS:
            loops[key] = loop
    state.loader_seen = True
    loop.epochs += 1
    length = _length(iterator)
    loop.planned = loop.planned + length if None not in (loop.planned, length) else None
    epoch = _epochs[iterator] = Epoch(loop, length)
    return epoch


def is_latest(iterator):
    """This iterator's batch is the one that is handed out."""
    _latest.iterator, _latest.steps = weakref.ref(iterator), state.steps


def current():
    """The Epoch that the program's work comes from, or None."""
    iterator = _latest.iterator() if _latest.iterator is not None else None
    if iterator is None or state.steps - _latest.steps > _RECENT:
        return None
    return _epochs.get(iterator)


def dataset_of(iterator):
    """What it reads, or None."""
    return getattr(iterator, "_dataset", None)


def latest_dataset():
    """What the iterator of the current epoch reads, or None."""
    return dataset_of(_latest.iterator())


def micro_batches():
    """The most batches that one update took, in loops that train."""
    return _latest.micro_batches


def most_volumes():
    """So many different amounts of memory the batches of one loop asked for at most; those of updates do not count."""
    return max((len(loop.volumes) for loop in loops.values()), default=0)


def read():
    """What the allocators say now; bytes of the device that has most, but all that was ever asked for. What is reserved on an unlimited
    card is told as 0: a cache that grows there is nothing new."""
    if not state.peaks:
        peaks.read()  # no step has ended yet
    rows = [stats for stats in map(torchapi.stats, state.peaks) if stats]
    allocated = [row["allocated_bytes"]["all"] for row in rows]
    requested = [row.get("requested_bytes", row["allocated_bytes"])["all"] for row in rows]
    reserved = [row["reserved_bytes"]["all"] for row in rows]
    unlimited = peaks.cards_are_unlimited()
    return Reading(
        max((row["current"] for row in allocated), default=0),
        max((row["peak"] for row in allocated), default=0),
        max((row["peak"] for row in requested), default=0),
        0 if unlimited else max((row["peak"] for row in reserved), default=0),
        sum(row["allocated"] for row in requested),
    )


def sentences(loop):
    """For a person: what was left out of a loop that was shortened."""
    where = origin.short(loop.place) if loop.place else "a data loader"
    if state.updates and not loop.trains:
        where += " (evaluation)"
    number, given, length = loop.first
    if length is not None:
        yield "%s: %s of the %s batches of epoch %d" % (where, _count(length - given), _count(length), number)
    else:
        yield "%s: everything after batch %s of epoch %d" % (where, _count(given), number)
    if loop.later:
        yield "%s: all but the first %s of %s" % (where, _batches(loop.fewest, loop.most), _epochs_after(loop.later))


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


def _batches(fewest, most):
    if most == 1:
        return "batch"
    return "%s batches" % (_count(most) if fewest == most else "%s to %s" % (_count(fewest), _count(most)))


def _epochs_after(count):
    return "each of the next %s epochs" % _count(count) if count > 1 else "the next epoch"


def _count(number):
    return "{:,}".format(number)
