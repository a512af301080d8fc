# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory history in windows of some steps, and snapshots of the steps that set a new peak.

A window is emptied, by recording anew, at the end of a step that leaves little room in it. So a snapshot mostly knows the
step before, too: gradients that live on were made there. A snapshot costs some milliseconds, more for a longer window;
where each step sets a new peak (a leak, a cache), snapshots get rarer. What a snapshot cannot know stands in it under
"tonnage" (metadata.py). Without detail (TONNAGE_DETAIL=0) nothing is recorded, unless a snapshot is wanted.

The program's own recorder goes on working: its settings win from its call on, ours stay away meanwhile, and come back
after it has switched off (which empties torch's history). A program that has not switched history on sees snapshots
without ours. torch's functions are wrapped at torch._C, where torch's Python code looks them up at each call.
"""

import _thread
import os
import pickle
import sys
import time

from . import cellnames, events, generated, guard, memory_log, metadata, peaks, torchapi, unused
from .state import settings, state

_MAX_ENTRIES = 60000  # events of one window; the oldest go first. About 40 MB at most.
_EVENTS = 3  # of an allocation: made, given back, free again
_OFTEN = 2  # snapshots of peaks that are not waited with; after that they get rarer
_MAX_SECONDS = 30.0  # for all snapshots of out-of-memories together

_original = {}


class _Recording:
    """Who records, and what of it was written."""

    __slots__ = ("ours", "theirs", "calling", "path", "spent", "shown", "peaks_written", "pending", "grew", "kept", "counted",
                 "counted_last")

    def __init__(self):
        self.ours = False  # our recording is on
        self.theirs = False  # the program's recording is on
        self.calling = False  # torch's function is being called by us
        self.path = None
        self.spent = 0.0  # seconds, for snapshots of out-of-memories
        self.shown = None  # the allocator's figures when an out-of-memory was kept last, and its largest free block
        self.peaks_written = 0
        self.pending = 0  # steps in the window since a peak that was not written yet
        self.grew = False  # the peak that was written last is of a step that reserved more: no step has gone by at that peak
        self.kept = False  # windows are kept: growth is being looked at
        self.counted = 0  # allocations before this window,
        self.counted_last = 0  # and at the end of the last step


_recording = _Recording()


def attach(core, name):
    """Wraps one of torch's functions: the program's recorder may be on before CUDA is there."""
    if settings.history and getattr(core, name) is not _for_program(name):
        _original[name] = getattr(core, name)
        setattr(core, name, _for_program(name))


def start():
    """Begins the first window. Called when CUDA is initialised."""
    for name in tuple(_original):
        attach(torchapi.core(), name)  # somebody may have put other functions there meanwhile
    if _can_record():
        _recording.path = _claim()
        memory_log.start()
        new_window()


def _can_record():
    """True where torch has what recording needs."""
    return len(_original) >= 2 and "_cuda_memorySnapshot" in _original


def stop():
    """Switches ours off; the program's own recording, if any, stays."""
    if _recording.ours:
        _recording.ours = False
        _record(None)


@guard.guarded
def step_ended(step):
    """Writes the snapshot of a peak, and begins a new window."""
    if not _can_record():
        return
    grew = step.grew
    events.snapshot_begins()
    metadata.steps.append((metadata.now(), state.steps, torchapi.allocated()))
    _recording.pending += 1 if grew or _recording.pending else 0
    full = _is_full()
    if _recording.pending and (not grew or _is_due(full)):
        _write_peak()
        _recording.grew = grew and not peaks.cards_are_unlimited()  # what is reserved there beyond it is cache, and no part of the peak
    elif _recording.grew and not grew:
        _write_peak()  # all that was reserved, and most of it in use: a late small segment, as of the optimizer's state, belongs to both
        _recording.grew = False
    if not (_recording.ours or _recording.theirs) or (full and not _recording.pending and not _recording.kept):
        new_window()


def _is_full():
    """True when two more steps such as the last one would not find room in the window."""
    count = torchapi.allocations()
    step, _recording.counted_last = count - _recording.counted_last, count
    return _EVENTS * (count - _recording.counted + 2 * step) > _MAX_ENTRIES


def _is_due(full):
    """The first peak waits for the next step, which mostly has a higher one, if the window has room for that step. The
    next is written at once, later ones when twice as many steps have gone by as the last time: a snapshot tells
    everything in its window again."""
    if _recording.peaks_written == 0:
        return full or _recording.pending > 1
    return _recording.peaks_written < _OFTEN or _recording.pending >= 1 << (_recording.peaks_written - _OFTEN + 1)


@guard.alone
def new_window():
    """Forgets the events so far, and goes on recording. Does nothing while the program records."""
    if not _can_record():
        return
    if not _recording.theirs:
        if _recording.ours:
            events.window_ends()
        _record("all")
        _recording.ours = True
        _recording.counted = torchapi.allocations()
    metadata.new_window()
    memory_log.new_window()


def keep_windows(keep):
    """Windows are no longer emptied: the growth of several steps shall be seen in one snapshot."""
    _recording.kept = keep


@guard.alone
def at_growth():
    """Keeps a snapshot of several steps that grew."""
    if _can_record():
        events.snapshot_begins()
        _write_peak()


@guard.alone
def finish():
    """A peak that no snapshot shows yet gets one. Called before a stop and at the end."""
    if not _can_record() or not state.cuda_initialized or state.open_oom is not None:
        return
    peaks.read(everywhere=True)
    if state.peak_unshown:
        events.snapshot_begins()
        _write_peak()


@guard.alone
def keep(path):
    """A snapshot of what the window holds. False when it cannot be had."""
    if not _can_record():
        return False
    events.snapshot_begins()
    return dump(path) is not None


@guard.alone
@guard.uncollected
def raw():
    """PyTorch's snapshot as it is, with the stacks of our recording; None while that is off."""
    return _take() if _can_record() and _recording.ours else None


def _write_peak():
    """Keeps a snapshot of the window that set a new peak."""
    _recording.pending = 0
    state.peak_unshown = False
    if dump(_recording.path) is not None:
        _recording.peaks_written += 1
        state.peak_snapshot = state.snapshot = _recording.path


@guard.alone
def shows_out_of_memory(device):
    """True when the last snapshot of an out-of-memory shows this one, too: nothing was allocated or given back since.
    cuDNN's plans are tried one after another like that, some hundred times where the card is nearly full."""
    if _recording.shown is None or _recording.shown[0] != _figures(device):
        return False
    state.oom_snapshot = state.snapshot = _recording.path + ".oom"
    return True


def shown_largest_free():
    """The largest free block in that snapshot."""
    return _recording.shown[1]


def _figures(device):
    stats = torchapi.stats(device)
    return stats and (device, stats["allocation"]["all"]["allocated"], stats["allocated_bytes"]["all"]["current"],
                      stats["reserved_bytes"]["all"]["current"])


@guard.alone
def at_out_of_memory(device):
    """Keeps a snapshot beside the peak's; the largest free block of the device in bytes, or None."""
    _recording.shown = None
    if not _can_record() or _recording.spent > _MAX_SECONDS:
        return None
    began = time.monotonic()
    target = _recording.path + ".oom"
    events.snapshot_begins()
    if not state.in_backward:
        events.out_of_memory_snapshot_begins()
    snapshot = dump(target)
    _recording.spent += time.monotonic() - began
    if snapshot is None:
        return None
    state.oom_snapshot = state.snapshot = target
    largest = largest_free_block(snapshot, device)
    figures = _figures(device)
    _recording.shown = figures and (figures, largest)
    return largest


@guard.alone
def out_of_memory_was_handled():
    """The peak's snapshot is the one to show again."""
    state.oom_snapshot = None
    state.snapshot = state.peak_snapshot


@guard.uncollected
def dump(path):
    """Writes a snapshot to `path` by way of a temporary name and returns it; None when that failed."""
    snapshot = _take()
    if isinstance(snapshot, dict):
        generated.name_frames(snapshot, os.path.dirname(state.torch.__file__))
        cellnames.name_frames(generated.stacks(snapshot))
        snapshot["tonnage"] = metadata.text(unused.rows() or ())
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            pickle.dump(snapshot, file)
        os.replace(part, path)
    except OSError:
        return None
    return snapshot


def largest_free_block(snapshot, device):
    """Bytes of the largest block of a device that PyTorch holds and nobody uses."""
    return max((block["size"] for segment in snapshot["segments"] if segment["device"] == device
                for block in segment["blocks"] if block["state"] == "inactive"), default=0)


def _claim():
    """The first process of a run takes the file that was asked for; others add their pid."""
    if not settings.snapshot:
        folder = os.path.join(settings.run or ".", "guest")
        os.makedirs(folder, 0o700, exist_ok=True)
        return os.path.join(folder, "%d.snapshot" % state.pid)
    try:
        os.close(os.open(settings.snapshot, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return settings.snapshot
    except OSError:
        return "%s.%d" % (settings.snapshot, state.pid)


def _record(enabled):
    """Our own call: Python stacks of allocations, the history emptied. Newer releases empty it on request, older ones
    when recording is switched off."""
    record = state.torch.cuda.memory._record_memory_history
    wish = {"context": "alloc", "stacks": "python", "max_entries": _MAX_ENTRIES}
    _recording.calling = True
    try:
        if "clear_history" in record.__signature__.parameters:
            record(enabled, clear_history=True, **wish)
        else:
            record(None)
            record(enabled, **wish)
    finally:
        _recording.calling = False


def _take():
    take = _original["_cuda_memorySnapshot"]
    with _NoCompilerImport():
        try:
            return take(None)  # newer releases: no memory pool in particular
        except TypeError:
            return take()


class _NoCompilerImport:
    """While PyTorch takes a snapshot it asks `torch` for `_inductor`, an attribute that is imported when it is first asked
    for: with sympy and triton that is as much again as torch itself, at the end of a program that compiles nothing. So
    a compiler that is not imported is not there, for this thread."""

    __slots__ = ("original",)

    def __enter__(self):
        self.original = state.torch.__dict__.get("__getattr__")
        if self.original is None or "torch._inductor" in sys.modules:
            self.original = None
            return
        state.torch.__getattr__ = self._without_compiler(_thread.get_ident())

    def __exit__(self, *_):
        if self.original is not None:
            state.torch.__getattr__ = self.original

    def _without_compiler(self, thread):
        original = self.original

        def __getattr__(name):
            if name == "_inductor" and _thread.get_ident() == thread:
                raise AttributeError(name)
            return original(name)

        return __getattr__


def _record_for_program(enabled, *args, **kwargs):
    _hand_over(enabled)
    return _original["_cuda_record_memory_history"](enabled, *args, **kwargs)


def _record_legacy_for_program(enabled, *args, **kwargs):
    _hand_over(enabled)
    return _original["_cuda_record_memory_history_legacy"](enabled, *args, **kwargs)


@guard.guarded
def _hand_over(enabled):
    if _recording.calling:
        return
    if enabled:
        stop()
    _recording.theirs = bool(enabled)


def _snapshot_for_program(*args, **kwargs):
    snapshot = _original["_cuda_memorySnapshot"](*args, **kwargs)
    if not _recording.theirs and isinstance(snapshot, dict):
        snapshot["device_traces"] = [[] for _ in snapshot.get("device_traces", ())]
        for segment in snapshot.get("segments", ()):
            _without_frames(segment)
    return snapshot


def _without_frames(segment):
    if "frames" in segment:
        segment["frames"] = []
    for block in segment.get("blocks", ()):
        block["frames"] = []


def _for_program(name):
    """What stands in the place of a function of torch."""
    return {"_cuda_record_memory_history": _record_for_program, "_cuda_record_memory_history_legacy": _record_legacy_for_program,
            "_cuda_memorySnapshot": _snapshot_for_program}[name]  # fmt: skip
