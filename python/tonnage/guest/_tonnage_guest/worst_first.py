# SPDX-License-Identifier: Apache-2.0
"""`--inputs longest`: in which order a loader's batches come.

    the largest batch of the epoch, until an update was made, and once after it (where nothing is trained: a few times)
    a rising sequence of the others, and the largest again
    the longest samples together, where another seed could make that batch
    the rest, in its order; as many batches as there were

The program's own sampler makes the batches: they are taken ahead, and what is handed on is put in the place of the iterator's
sampler before each batch, so that none of our frames is below the program's (loaders.py). Loaders fetch ahead, so the largest
comes as often as no update could have been seen.

Invariant: whatever fails here, the iterator gets all batches that its sampler made.
"""

import heapq
import itertools
import time
import weakref

from . import ahead, guard
from .state import settings, state

_MOST_AHEAD = 1_000_000  # batches that are taken ahead
_SECONDS_AHEAD = 5.0
_MOST_REPEATED = 64  # times that the largest comes until an update
_FETCHED_AHEAD = 3  # batches: accelerate and Lightning ask for the next one before they hand one on
_RISING = 6
_LAYERS = 4
_clock = time.monotonic

_plans = weakref.WeakKeyDictionary()  # iterator -> Plan of its epoch
_planned = []  # Known of data sets whose whole sequence has been run


class _Raises:
    """An iterator that raises what the program's sampler has raised, when its turn comes."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        return self

    def __next__(self):
        error, self.error = self.error, StopIteration()
        raise error


class Plan:
    """One epoch of one iterator."""

    __slots__ = ("known", "source", "put", "largest", "then", "together", "rest", "updates", "backwards", "repeats", "handed",
                 "left", "end",
                 "since_together")

    def __init__(self, known, source):
        self.known = known
        self.source = source  # the sampler's iterator
        self.put = None  # what we put in its place last
        self.largest = None  # while it comes again and again
        self.then = []  # batches after it, in this order
        self.together = None
        self.rest = source
        self.updates, self.backwards = state.updates, state.backwards
        self.repeats = 0  # of the largest
        self.handed = 0  # batches handed out
        self.left = None  # batches of the epoch that are still to come; None: unknown
        self.end = ()  # what comes when none is left
        self.since_together = 0  # batches handed out from the longest together on


@guard.guarded
def indices_wanted(iterator):
    """Puts the next batch where the iterator looks for it."""
    if settings.inputs != "longest" or iterator._sampler_iter is None:
        return
    plan = _plans.get(iterator)
    if plan is None or iterator._sampler_iter is not plan.put:
        plan = _plans[iterator] = _make(iterator)
    iterator._sampler_iter = plan.put = _next(plan)


@guard.guarded
def batch_fetched(batch):
    """Tells the peaks of both kinds of batches apart."""
    plan = _plans.get(batch.iterator)
    if plan is None:
        return
    plan.handed += 1
    if plan.since_together:
        plan.since_together += 1
        if plan.since_together == _FETCHED_AHEAD:
            ahead.note_peaks(plan.known, "longest_together")
    elif plan.together is not None and plan.known.current == ahead.numbers_of(plan.together):
        plan.since_together = 1
        ahead.note_peaks(plan.known, "largest_batch")


# ---- handing on ----


def _next(plan):
    """An iterator whose next item is the batch that comes now."""
    if plan.left is not None:
        if plan.left <= 0:
            return iter(plan.end)
        plan.left -= 1
    if plan.largest is not None:
        if _comes_again(plan):
            plan.repeats += 1
            return iter((plan.largest,))
        largest, plan.largest = plan.largest, None
        if state.updates != plan.updates:
            return iter((largest,))
    if plan.then:
        return iter((plan.then.pop(0),))
    return plan.rest


def _comes_again(plan):
    if state.updates != plan.updates or plan.repeats >= _MOST_REPEATED:
        return False
    return plan.handed < _FETCHED_AHEAD or _trains(plan)


def _trains(plan):
    """True where backward passes come between the batches; without the sensor of those, where an optimizer is there."""
    if settings.history:
        return state.backwards != plan.backwards
    return state.trains and state.torch.is_grad_enabled()


# ---- the plan ----


def _make(iterator):
    known = ahead.of(iterator)
    plan = Plan(known, iterator._sampler_iter)
    found = ahead.counts_of(known) if known is not None and known.count is not None else None
    if found is None:
        return plan
    batches, behind = _take_ahead(plan.source, iterator._index_sampler, known.count)
    plan.rest = itertools.chain(batches, behind)
    if behind is _NOTHING or isinstance(behind, _Raises):
        plan.left, plan.end = len(batches), behind
    guard.alone(_order)(plan, batches, behind, found, iterator._index_sampler)
    return plan


_NOTHING = ()


def _take_ahead(source, sampler, count):
    """(batches, what comes behind them): an epoch of a sampler's batches, as far as time allows."""
    try:
        most = min(len(sampler), _MOST_AHEAD)
    except Exception:
        most = None  # may be endless
    batches, samples, until = [], 0, _clock() + _SECONDS_AHEAD
    while (len(batches) < most if most is not None else samples < count and len(batches) < _MOST_AHEAD) and _clock() < until:
        try:
            batch = next(source)
        except StopIteration:
            return batches, _NOTHING
        except Exception as error:
            return batches, _Raises(error)
        batches.append(batch)
        samples += len(ahead.numbers_of(batch)) or 1
    return batches, _NOTHING if most is not None and len(batches) == most else source


def _order(plan, batches, behind, found, sampler):
    unit, counts = found
    sizes = [_sizes(batch, counts, unit) for batch in batches]
    order = sorted((i for i, size in enumerate(sizes) if size is not None), key=lambda i: sizes[i])
    if not order or sizes[order[0]] == sizes[order[-1]]:
        return  # all alike: nothing to put first
    largest = batches[order[-1]]
    used = {order[-1]}
    if plan.known not in _planned:
        _planned.append(plan.known)
        plan.largest = largest
        used.update(_rising(order, sizes, plan, batches))
        plan.together = _together(batches, counts, sizes[order[-1]], unit, sampler)
        plan.then += [largest] + ([plan.together] if plan.together is not None else [])
    else:
        plan.then = [largest]
    plan.rest = itertools.chain([batch for i, batch in enumerate(batches) if i not in used], behind)


def _rising(order, sizes, plan, batches):
    """Puts a rising sequence behind the largest; the last of it is the largest by the other rule. Returns their numbers."""
    below = order[:-1]
    chosen = sorted({below[len(below) * k // _RISING] for k in range(min(_RISING, len(below)))}, key=lambda i: sizes[i])
    other = max(order, key=lambda i: sizes[i][::-1])
    if other != order[-1]:
        chosen = [i for i in chosen if i != other] + [other]
    plan.then += [batches[i] for i in chosen]
    return chosen


def _sizes(batch, counts, unit):
    """(leading, other): how large a batch is when it is padded to its longest sample, and when its samples are joined."""
    found = [counts[i] for i in ahead.numbers_of(batch) if i < len(counts)]
    if not found or max(found) < 0:
        return None
    padded, joined = max(found) * len(found), sum(each for each in found if each > 0)
    return (joined, padded) if unit == "nodes" else (padded, joined)


def _together(batches, counts, largest, unit, sampler):
    """The longest samples as one batch; None where no seed makes it, or where it is no larger."""
    first = batches[0]
    sizes = {len(batch) for batch in batches[:-1] if isinstance(batch, (list, tuple))}
    if not isinstance(first, (list, tuple)) or len(sizes) != 1 or not _is_drawn(sampler):
        return None
    longest = heapq.nlargest(len(first), range(len(counts)), key=lambda i: counts[i])
    batch = type(first)(longest) if type(first) in (list, tuple) else longest
    return batch if _sizes(batch, counts, unit)[0] > largest[0] else None


def _is_drawn(sampler):
    """False where the order of samples is always the same."""
    for _ in range(_LAYERS):
        if isinstance(sampler, (list, tuple, range)) or type(sampler).__name__ == "SequentialSampler":
            return False
        if getattr(sampler, "shuffle", True) is False:
            return False
        inner = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)
        if inner is None or inner is sampler:
            return True
        sampler = inner
    return True
