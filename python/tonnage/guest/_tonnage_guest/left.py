# SPDX-License-Identifier: Apache-2.0
"""What each cell of a notebook left behind: bytes that are alive at its end and that it made; and its peak, as a region.

Of an allocation with a Python stack the outermost cell says who made it. One without (autograd's threads) is the cell's, unless it
was there as the cell began and was not freed since: PyTorch's history tells, which is looked through before it is emptied.
"""

from . import cellnames, frames, guard, history, metadata, peaks, phases, record
from .state import state

_FREED = ("free_requested", "free_completed")


class Blocks:
    """What lives in PyTorch's allocator: {(device, address): (bytes, cell or None)}."""

    __slots__ = ("alive",)

    def __init__(self, snapshot):
        self.alive = {}
        for segment in snapshot.get("segments", ()):
            device = segment.get("device", 0)
            for block in segment.get("blocks", ()):
                if block.get("state") == "active_allocated":
                    made_in = cellnames.cell_of(block.get("frames"))
                    self.alive[device, block["address"]] = block["size"], made_in


class _During:
    """The cell that is being run."""

    __slots__ = ("began", "unknown", "of_before", "old", "made", "new", "both")

    def __init__(self):
        self.began = 0  # microseconds: later events of the history are looked at
        self.unknown = {}  # blocks without a stack that were there before and were not freed since
        self.of_before = {}  # blocks of earlier runs of this cell, as `unknown`
        self.old = 0  # bytes of them
        self.made = {}  # blocks that were allocated since, and are alive
        self.new = 0  # bytes of them
        self.both = 0  # the most that there was of old and new at one time


_during = _During()


def snapshot():
    """PyTorch's snapshot where our recording is on, else None."""
    return history.raw() if state.cuda_initialized else None


@guard.guarded
def cell_began(cell):
    """Names its region."""
    state.regions.setdefault(cell.name, None)
    phases.name_region(cell.name)
    _during.__init__()
    _during.began = _microseconds()
    found = snapshot()
    if found is None:
        return
    for key, (size, made_in) in Blocks(found).alive.items():
        if made_in is None:
            _during.unknown[key] = size
        elif made_in in cell.earlier:
            _during.of_before[key] = size
    _during.old = sum(_during.of_before.values())


@guard.guarded
def window_ends():
    """PyTorch's history is about to be emptied."""
    if state.cell is not None and (_during.unknown or _during.of_before):
        found = snapshot()
        if found is not None:
            _replay(found)


def _replay(found):
    """Follows the events since the last time."""
    for device, trace in enumerate(found.get("device_traces", ())):
        for event in trace:
            if event.get("time_us", 0) > _during.began:
                _follow(event["action"], (device, event.get("addr")), event.get("size", 0))
    _during.began = _microseconds()


def _microseconds():
    return metadata.now() // 1000


def _follow(action, key, size):
    if action == "alloc":
        _during.unknown.pop(key, None)
        _during.made[key] = size
        _during.new += size
        _during.both = max(_during.both, min(_during.old, _during.new))
    elif action in _FREED:
        _during.unknown.pop(key, None)
        _during.old -= _during.of_before.pop(key, 0)
        _during.new -= _during.made.pop(key, 0)


@guard.guarded
def cell_ended(cell, error):
    """Notes what it left."""
    at = frames.place_of_traceback(error.__traceback__) if error is not None else None
    row = {"name": cell.name, "left_bytes": None, "at": at, "failed": "%s: %s" % (type(error).__name__, str(error).partition("\n")[0][:200]) if error is not None else None}
    state.cells.append(row)
    if state.cuda_initialized:
        peaks.read(everywhere=True)
        row["left_bytes"] = _made(cell.name)
        if state.peak_unshown:
            history.finish()
    record.write_now()


def _made(name):
    found = snapshot()
    if found is None:
        return None
    _replay(found)
    return sum(size for key, (size, made_in) in Blocks(found).alive.items()
               if made_in == name or (made_in is None and key not in _during.unknown))


@guard.alone
def made_so_far():
    """Bytes that the cell which is being run has made and that are alive; None where that cannot be told. For %%tonnage."""
    return _made(state.cell) if state.cuda_initialized and state.cell is not None else None


def old_alive():
    """Bytes of earlier runs of this cell that are alive."""
    return _during.old


def old_beside_new():
    """The most bytes of earlier runs of this cell that were alive beside as many that it made itself; after cell_ended."""
    return _during.both
