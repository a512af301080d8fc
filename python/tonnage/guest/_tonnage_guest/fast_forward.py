# SPDX-License-Identifier: Apache-2.0
"""The rest of the program, fast-forwarded: once training has settled, data loaders end their epochs early.

What comes after a loop (evaluation, saving, the next epoch, the program's own end) is then seen within the time limit.
Every epoch gives at least one batch, since programs divide by their number. A training loop ends after one update, one that begins only now
after two or more, the last of which brought nothing new; an evaluation loop when its own memory has settled. A loop is only shortened where the code that takes the batches treats a
StopIteration as the end of a loop (consumers.py); programs whose work comes from elsewhere are stopped from outside.

Once a whole round of epochs has brought nothing that was not there before, the remaining rounds tell nothing, but what
comes after the last of them may: they go on, shortened, while that is quick, and are over when it is not. A round goes from the
start of a training epoch to the start of the next one at the same place; epochs and loops are those of epochs.py. What is quick is not
asked in a trial of `fix` once the unchanged program was ended so: in which of its epochs of training something new came last is
known then (TONNAGE_LAST_NEWS), and the first round behind it that brings nothing ends the trial. One that began before that was known waits for it.

Where the text of the program's loop tells what its later rounds will do (later_rounds.py), nobody waits for what cannot come in that time, and somewhat
longer for what does: the epoch in which a backbone is unfrozen.

Invariant: nothing is shortened before begin() was called, but long evaluation loops that have settled.
This part never asks to stop and never writes; settle.py and steps.py do.
"""

import ast
import math
import sys
import time

from . import consumers, epochs, frames, growth, guard, later_rounds, origin, trainers
from .state import settings, state

_QUIET = 8  # batches of an evaluation loop that bring nothing new, until it ends,
_QUIET_IN_TRIAL = 4  # where the unchanged program is known to settle,
_QUIET_AGAIN = 1  # when the loop was gone through in the fast-forward before
_MAX_BATCHES = 200  # of one evaluation loop
_LONG_SECONDS = 20.0  # that one before any training is not waited for
_QUIET_SECONDS = 4.0  # without anything new, with a whole round in them, until the fast-forward is over;
_QUIET_SHARE = 0.1  # or this share of the time so far, where that is longer;
_ROUNDS = 3  # that bring nothing new, until the program's text is asked what may come
_EXPECTING_SHARE = 0.25  # or this share of the time limit, where the program's text says that something new comes within it; all of it in `fix`
_MAX_LOOKS = 2  # at the text, until something is new
_MAX_DATASETS = 256
_MAX_TOLD = 40
_clock = time.monotonic

_met = {}  # data sets that gave a batch in the fast-forward, by id
_told = []


class _Rounds:
    """What the fast-forward has brought so far."""

    __slots__ = ("seen", "quiet_since", "repeated", "known", "last_news", "over", "all_seen", "outlook", "looks", "began", "pace")

    def __init__(self):
        self.seen = None  # what there was when something was new last
        self.quiet_since = 0.0  # when that was
        self.repeated = 0  # whole rounds that have brought nothing new
        self.known = None  # what there was when an epoch began last, before the fast-forward, too
        self.last_news = 0  # epochs of training that had begun when that was new last
        self.over = False  # the program was ended since nothing new came
        self.all_seen = False  # it came to its own end
        self.outlook = None  # what later rounds do, by the text of their loop; None where that does not tell
        self.looks = 0  # how often that was looked at since something was new
        self.began = self.pace = None  # when the last round began, and how many seconds the one before took, where that brought nothing new, too

    def start_again(self, seen):
        """Something new has come."""
        self.seen, self.quiet_since, self.repeated = seen, _clock(), 0
        self.outlook, self.looks, self.began, self.pace = None, 0, None, None

    def quiet_enough(self):
        """True when nothing new has come for long enough, or nothing can that would come in time."""
        now = _clock()
        quiet, enough = now - self.quiet_since, max(_QUIET_SECONDS, _QUIET_SHARE * (now - (state.last_import or state.started)))
        if self.outlook is None:
            return quiet >= enough
        if self.a_round() * self.outlook.until_new(first=True) <= _share() * settings.seconds - quiet:
            return False
        in_time = self.a_round() * min(self.outlook.left(), self.outlook.until_new()) <= enough - quiet
        return quiet >= enough or (self.repeated >= _ROUNDS and not in_time)

    def a_round(self):
        """Seconds that a round takes."""
        return self.pace if self.pace is not None else _clock() - self.quiet_since


def _share():
    """Of the time limit, for what the program's text says of later rounds."""
    return 1.0 if settings.patient else _EXPECTING_SHARE


_rounds = _Rounds()


@guard.guarded
def batch_begins(batch):
    """A batch was fetched and not given yet; says whether the epoch ends here instead."""
    iterator, frame = batch.iterator, batch.frame
    epoch = None if batch.first else epochs.of(iterator)
    if epoch is None:
        epoch = _begin_epoch(iterator, frame)
    if not batch.first:
        epoch.batch_is_over(batch.new_shape, batch.phase_before)
    epoch.can_end = settings.watch_settling and consumers.ends_loop(frame.f_back)
    epochs.is_latest(iterator)
    if state.fast_forward is not None:
        _meet(epochs.dataset_of(iterator))
    if epoch.can_end and _is_over(epoch, frame):
        batch.ends = True
    else:
        epoch.batches += 1


def turns_left_out(place, given, length):
    """A counting loop of a cell ends after so many turns of `length` (cell_loops.py)."""
    state.stopped = state.stopped or state.turns_over
    state.turns_left_out = True
    if length is None:
        tell("%s: everything after turn %s of the loop" % (origin.short(place), "{:,}".format(given)))
    elif given < length:
        tell("%s: %s of the %s turns of the loop" % (origin.short(place), "{:,}".format(length - given), "{:,}".format(length)))


@guard.alone
def possible():
    """True when the program's work comes from a loader whose epoch can be ended."""
    epoch = epochs.current()
    return epoch is not None and epoch.can_end and not _distributed() and settings.program is None


@guard.alone
def begin(reason):
    """From now on epochs end early."""
    state.fast_forward = reason
    _rounds.start_again(_all_seen())
    _note_news(_rounds.seen)
    epoch = epochs.current()
    if epoch is not None:
        epoch.loop.seen, epoch.again = _rounds.seen, True
        _meet(epochs.latest_dataset())


@guard.guarded
def waited(seconds):
    """So long the hook has kept the program waiting: nothing could come."""
    _rounds.quiet_since += seconds


def has_met(dataset):
    """True for a data set that has given a batch in the fast-forward."""
    return state.fast_forward is not None and id(dataset) in _met


@guard.alone
def over():
    """True when the remaining rounds would take long and tell nothing: one has repeated what was there before."""
    if not _rounds.repeated or settings.news_waits:
        return False
    if settings.news_epoch is not None:
        _rounds.over = _trainings() > settings.news_epoch
        return _rounds.over
    _rounds.over = _rounds.quiet_enough()
    if _rounds.over and _rounds.outlook is not None:
        _tell_of(_rounds.outlook.next_new(first=True))
    return _rounds.over


def last_news():
    """The epoch of training, counted at all places, before which something new came last; None where the program neither was ended
    since nothing new came nor came to its end."""
    return _rounds.last_news if _rounds.over or _rounds.all_seen else None


@guard.alone
def program_ended():
    """The program comes to its own end. What came behind its last epoch is news of that one."""
    if state.armed:
        _note_news(_all_seen())
        _rounds.all_seen = True


def shortened():
    """True when an epoch, or a counting loop of a cell, was ended early."""
    return state.turns_left_out or any(loop.first is not None for loop in epochs.loops.values())


def why_not(frame):
    """Why the program's end was not fast-forwarded, in words; `frame` is the one that made a step."""
    place = frames.place(frame)
    where = origin.short(frames.describe(place)) if place is not None else "an unknown place"
    epoch = epochs.current()
    if epoch is None:
        return "the loop around %s has no data loader" % where
    if _distributed():
        return "the ranks of a job are not shortened"
    if settings.program is not None:
        return "programs that share a card are not shortened"
    return "the batches at %s are taken one by one" % (origin.short(epoch.loop.place) if epoch.loop.place else where)


def tell(sentence):
    """Adds a line about what was not seen."""
    if sentence not in _told and len(_told) < _MAX_TOLD:
        _told.append(sentence)


@guard.alone
def broke(error):
    """The program failed with this exception (as the document describes it), and not for lack of memory."""
    if shortened():
        at = " at %s" % origin.short(error["at"]) if error["at"] else ""
        text = ": %s" % error["message"] if error["message"] else ""
        state.fast_forward_failed = "%s%s after data loaders had ended early%s" % (error["type"], at, text)


@guard.alone
def exited(status):
    """The program ends itself with a status other than 0, and not for lack of memory."""
    if shortened() and state.fast_forward_failed is None:
        state.fast_forward_failed = "the program ended with status %s after data loaders had ended early" % (status,)


def not_seen():
    """Sentences for a person: what was shortened or left out."""
    lines = []
    for loop in epochs.loops.values():
        if loop.first is not None and len(lines) < _MAX_TOLD:
            lines.extend(epochs.sentences(loop))
    return lines + _told


def _begin_epoch(iterator, frame):
    epoch = epochs.begin(iterator, frame)
    seen = _all_seen()
    _note_news(seen)
    if state.fast_forward is not None:
        _look_for_news(epoch.loop, seen, frame)
    return epoch


def _look_for_news(loop, seen, frame):
    """An epoch begins: what has the last round brought?"""
    if seen != _rounds.seen:
        _rounds.start_again(seen)
    elif seen == loop.seen and (loop.trains or not state.trains):
        _rounds.repeated += 1
        if settings.news_epoch is None and not settings.news_waits:
            _look_ahead(frame)
    loop.seen = seen


def _look_ahead(frame):
    """A round begins as the last one did: what does the program's text say of those that follow?"""
    _rounds.pace = _clock() - _rounds.began if _rounds.began is not None else None
    if _rounds.outlook is not None and not _rounds.outlook.goes_on(frame):
        _rounds.outlook = None
    if _rounds.outlook is None and _rounds.looks < _MAX_LOOKS:
        _rounds.looks += 1
        _rounds.outlook = later_rounds.look(frame)
    _rounds.began = _clock()


def _tell_of(news):
    """The program's text says what comes in a later round."""
    if news is not None:
        place = origin.short({"file": origin.absolute(news.file), "line": news.test.lineno})
        seconds = _rounds.a_round() * _rounds.outlook.until_new(first=True) + _QUIET_SECONDS
        wish = ("TONNAGE_SECONDS=%d" if settings.patient else "--seconds %d") % (10 * math.ceil(1.1 * seconds / _share() / 10))
        tell("%s: what round %s of this loop is the first to do (%s), some %s s away: %s waits for it" % (
            place, _count(news.round), ast.unparse(news.test), _count(math.ceil(seconds)), wish))  # fmt: skip


def _note_news(seen):
    if seen != _rounds.known:
        _rounds.known, _rounds.last_news = seen, _trainings()


def _trainings():
    """The epochs of training that have begun, at all places."""
    return sum(loop.epochs for loop in epochs.loops.values() if loop.trains or not state.trains)


def _meet(dataset):
    if len(_met) < _MAX_DATASETS:
        _met[id(dataset)] = dataset  # kept, so that its id stays its own


def _is_over(epoch, frame):
    """True when the epoch ends now."""
    if epoch.ended:
        return True
    if state.fast_forward is None:
        return _evaluation_alone(epoch) and _end(epoch)
    planned = trainers.end_with_this_batch(frame)
    if planned is not None:
        epoch.length = planned
        _note_end(epoch, epoch.batches + 1)
        return False
    return epoch.batches > 0 and _has_shown_all(epoch) and _end(epoch)


def _has_shown_all(epoch):
    if epoch.loop.trains:
        return epoch.repeated or (epoch.updated and epoch.again)
    if epoch.watch.certain() or epoch.batches >= _MAX_BATCHES:
        return True
    enough = _QUIET_AGAIN if epoch.again else _QUIET if settings.news_step is None else _QUIET_IN_TRIAL
    return epoch.quiet >= enough and (epoch.batches > 2 * epochs.micro_batches() or not state.torch.is_grad_enabled())


def _evaluation_alone(epoch):
    """An evaluation before training has settled, which would take all the time. Before any training it may be all that the program does
    (its optimizer is made either way), or make what the training needs: then it goes on where that is quick."""
    if not state.trains or epoch.loop.trains or state.torch.is_grad_enabled():
        return False
    if epoch.batches < _MAX_BATCHES and (state.backwards or epoch.seconds_left() < _LONG_SECONDS):
        return False
    if epoch.watch.certain():
        growth.goes_on(epoch.watch)
        return True
    return epoch.quiet >= _QUIET


def _end(epoch):
    epoch.ended = True
    _note_end(epoch, epoch.batches)
    return True


def _note_end(epoch, given):
    """An epoch ends after so many batches."""
    if epoch.loop.note_end(epoch, given) and state.stopped is None:
        state.stopped = state.fast_forward or "settled"


def _all_seen():
    """Changes when the program did something for the first time."""
    now, devices = epochs.read(), state.peaks.values()  # the peaks of the devices were read at the last step only
    requested = max([now.requested_peak, *(device.requested_peak for device in devices)])
    reserved = now.reserved_peak and max([now.reserved_peak, *(device.reserved_peak for device in devices)])
    return len(epochs.loops), len(state.regions), len(state.shapes), requested, reserved


def _distributed():
    distributed = sys.modules.get("torch.distributed")
    try:
        return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1
    except Exception:
        return False


def _count(number):
    return "{:,}".format(number)
