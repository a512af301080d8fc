# SPDX-License-Identifier: Apache-2.0
"""What is known of samples that have not come yet: the lengths of each loader's data set, and which samples came.

    a loader's first batch   the data set is looked at: what it tells by itself at once, else its samples beside the program
                             (looks.py), before the batch where somebody waits for them
    each batch               which samples are in it, and how wide it is
    document()               of the loader with most left to see: `inputs` of the report (doc/design/0032-inputs.md)
"""

import collections
import weakref

from . import facts, frames, guard, lengths, looks, padding, peaks, shapes
from .state import settings, state

_SECONDS = 1.0  # of a look that nobody asked for
_SECONDS_ASKED, _SHARE_ASKED = 20.0, 0.2  # and of one that somebody did: a share of the time limit
_MAX_LOOKED = 12  # data sets
_CONFIG = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
_ONE_DIMENSION = ("tokens", "frames", "values")  # lengths that are a size of the batch's tensors
_SURE = 3  # lengths of which one shape was made
_ITERABLE = "iterable data cannot be looked ahead"

known = {}  # id of a data set -> Known
_gone = []  # of data sets that are no more
_taken = collections.OrderedDict()  # id of an iterator -> indices of batches that were taken and not handed out yet


class Known:
    """What is known of one data set."""

    __slots__ = ("reference", "count", "found", "look", "why_not", "seen", "place", "widths", "current", "peaks_of")

    def __init__(self, dataset, count):
        self.reference = _reference(dataset)  # or its class: nothing is kept alive
        self.count = count
        self.found = None  # lengths.Lengths
        self.look = None
        self.why_not = None
        self.seen = bytearray(count or 0)
        self.place = None  # of the loop
        self.widths = []  # (longest sample, width, signature) of batches; few
        self.current = ()  # indices of the batch that was handed out last
        self.peaks_of = {}  # worst_first.py: "largest_batch", "longest_together" -> peaks


def of(iterator):
    """Known of the data set that an iterator reads, made where there is none yet; None for too many."""
    dataset = getattr(iterator, "_dataset", None)
    one = known.get(id(dataset))
    if one is not None and one.reference() is not dataset and one.reference() is not type(dataset):
        _gone.append(known.pop(id(dataset)))  # another one has its place
        one = None
    if one is None and dataset is not None and len(known) + len(_gone) < _MAX_LOOKED:
        one = known[id(dataset)] = _begin(dataset, iterator)
    return one


def _reference(dataset):
    try:
        return weakref.ref(dataset)
    except TypeError:  # a list
        return lambda kind=type(dataset): kind


def _begin(dataset, iterator):
    iterable = getattr(iterator, "_dataset_kind", 0) != 0
    one = Known(dataset, None if iterable else lengths.size_of(dataset))
    if one.count is None:
        one.why_not = _ITERABLE if iterable else "its length is unknown"
    elif _looks():
        _look(one, dataset, getattr(iterator, "_index_sampler", None))
    return one


def _looks():
    asked = settings.inputs == "longest"
    return asked or not (settings.trial or (state.rank or 0) > 0)


def _look(one, dataset, sampler):
    one.found = lengths.told_by(dataset) or lengths.told_by_sampler(sampler, one.count)
    if one.found is not None:
        return
    one.why_not = looks.why_not(dataset)
    if one.why_not is None:
        one.found = lengths.Lengths(one.count, "samples")
        one.look = looks.begin(dataset, one.count, _seconds())


def _seconds():
    return min(_SECONDS_ASKED, _SHARE_ASKED * settings.seconds) if settings.inputs == "longest" else _SECONDS


def _take(one, wait=False):
    """What a look has found so far."""
    if one.look is not None and one.look.take(one.found, wait):
        one.why_not, one.look = one.look.ended or None, None


def counts_of(one):
    """(unit, counts by index) once the look is over; None where nothing is known."""
    _take(one, wait=True)
    return one.found.one() if one.found is not None else None


@guard.alone
def finish():
    """Looks that are going on are over: the program ends."""
    for one in _all():
        _take(one, wait=True)


# ---- which samples came ----


@guard.guarded
def indices_taken(iterator, indices):
    """A loader's iterator has taken a batch of indices."""
    one = of(iterator)
    if one is not None and one.count is not None:
        _taken.setdefault(id(iterator), collections.deque(maxlen=4096)).append(numbers_of(indices))
        while len(_taken) > 64:
            _taken.popitem(last=False)


@guard.guarded
def batch_fetched(batch):
    """The batch of the indices that were taken first is handed out."""
    one = of(batch.iterator)
    waiting = _taken.get(id(batch.iterator))
    if one is None:
        return
    if one.place is None and batch.frame is not None:
        place = frames.place(batch.frame.f_back)
        one.place = frames.describe(place) if place is not None else None
    if not waiting:
        return
    one.current = waiting.popleft()
    for index in one.current:
        if index < one.count:
            one.seen[index] = 1
    if len(one.widths) < 256:
        one.widths.append((one.current, shapes.signature(batch.data)))
    _latest.known = one


class _Latest:
    """Whose batch was handed out last."""

    __slots__ = ("known",)

    def __init__(self):
        self.known = None


_latest = _Latest()


def numbers_of(indices):
    """The samples of a batch of indices, as far as they are numbers."""
    if isinstance(indices, (list, tuple)):
        return tuple(index for index in indices if isinstance(index, int) and index >= 0)
    return (indices,) if isinstance(indices, int) and indices >= 0 else ()


def note_peaks(one, name):
    """Peaks so far are those of batches up to this name's."""
    peaks.read(everywhere=True)
    one.peaks_of[name] = _peaks_now()


def _peaks_now():
    devices = state.peaks.values()
    return {
        "allocated_bytes": max((device.allocated_peak for device in devices), default=0),
        "reserved_bytes": max((device.reserved_peak for device in devices), default=0),
    }


# ---- what is told ----


@guard.alone
def document():
    """`inputs` of guest/<pid>.json; None where no loader was seen."""
    _unite()
    rows = [_row(one) for one in _all()]
    found = max(rows, key=lambda row: row["rank"], default=None)
    if found is not None:
        found.pop("rank")
    return found


def _all():
    return _gone + list(known.values())


def _unite():
    """Data sets that are made anew for each epoch are one: at one loop, and alike in all lengths."""
    first = {}
    for one in _all():
        _take(one)
        if one.place is None or one.count is None:
            continue
        key = one.place["file"], one.place["line"], one.count
        other = first.setdefault(key, one)
        if other is not one and _columns(other) == _columns(one):
            one.seen = other.seen = bytearray(map(max, one.seen, other.seen))
            one.peaks_of = {**one.peaks_of, **other.peaks_of}


def _columns(one):
    return one.found.columns if one.found is not None else None


def _row(one):
    found = one.found.one() if one.found is not None else None
    unit, counts = found if found is not None else (None, None)
    longest_seen = longest_known = index = shortest = middle = None
    if counts is not None:
        longest_known = max(counts)
        index = counts.index(longest_known)
        looked = sorted(count for count in counts if count >= 0)
        shortest, middle = looked[0], looked[(len(looked) - 1) // 2]
        longest_seen = max((counts[i] for i in range(one.count) if one.seen[i]), default=-1)
        longest_seen = longest_seen if longest_seen >= 0 else None
    more = longest_known is not None and longest_seen is not None and longest_known > longest_seen
    cut = _cut(one, counts) if more and unit in _ONE_DIMENSION else None
    fixed = more and _is_fixed(one, counts, unit, longest_known)
    if cut is not None and longest_seen >= cut or (more and (settings.pad_to or 0) >= longest_known):
        more = False
    failed = state.oom_ended_process and _latest.known is one
    largest, together = _figures(one, failed)
    seen = sum(one.seen) if one.count is not None else None
    unknown = counts is None and (seen is None or seen < one.count)
    return {
        "rank": (failed, bool(more and not fixed), longest_known / max(1, longest_seen) if more else 0, unknown,
                 shortest != longest_known, one.count or 0),
        "order": "pad" if settings.pad_to is not None else settings.inputs,
        "seen": seen,
        "of": one.count,
        "looked": one.found.looked if one.found is not None else 0,
        "shortest_known": shortest,
        "middle_known": middle,
        "longest_seen": longest_seen,
        "longest_known": longest_known,
        "index": index,
        "unit": unit,
        "in_last_batch": index is not None and index in one.current,
        "last_batch": len(one.current),
        "longer": bool(more and not fixed),
        "at": one.place,
        "why_not": one.why_not,
        "model_takes": _model_takes() if one.count is None else None,
        **padding.document(),
        "largest_batch": largest,
        "longest_together": together,
        "together_failed": failed and together is None and largest is not None,
    }


def _figures(one, failed):
    """Peaks of the largest batch of this seed, and from the longest samples together on; None: not known, or none."""
    if settings.inputs != "longest" or one.found is None:
        return None, None
    largest, together = one.peaks_of.get("largest_batch"), one.peaks_of.get("longest_together")
    if largest is None:
        return (None if failed else _peaks_now()), None
    return largest, together or (None if failed else _peaks_now())


def _sizes(signature):
    """The sizes behind the first dimension of all tensors in a batch."""
    if isinstance(signature, tuple) and signature and all(isinstance(size, int) for size in signature):
        yield from signature[1:]
    elif isinstance(signature, tuple):
        for part in signature:
            yield from _sizes(part)


def _cut(one, counts):
    """The length that the program cuts samples to: a batch was narrower than a sample in it. None: it was not seen to."""
    widest = None
    for indices, signature in one.widths:
        sizes = list(_sizes(signature))
        longest = max((counts[i] for i in indices if i < one.count), default=-1)
        if sizes and longest > max(sizes):
            widest = max(widest or 0, max(sizes))
    return widest


def _is_fixed(one, counts, unit, longest_known):
    """True when batches of different lengths had one shape: all are padded, or scaled, to it. Where the length is a size of the
    batch, it has to be as wide as the longest; boxes and nodes need not show in shapes."""
    if unit in ("boxes", "nodes"):
        return False
    most = max((len(indices) for indices, _ in one.widths), default=0)
    rows = [(max(counts[i] for i in indices), signature) for indices, signature in one.widths if len(indices) == most and indices]
    lengths_met = {length for length, _ in rows}
    if len(lengths_met) < _SURE or len({signature for _, signature in rows}) != 1:
        return False
    return unit not in _ONE_DIMENSION or max(_sizes(rows[0][1]), default=0) >= longest_known


def _model_takes():
    """The longest sequence that a model of the program is configured for, or None."""
    for module in facts.called_modules():
        config = getattr(module, "config", None)
        for holder in (config, getattr(config, "text_config", None)):
            for name in _CONFIG:
                value = getattr(holder, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None
