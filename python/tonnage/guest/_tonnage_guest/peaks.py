# SPDX-License-Identifier: Apache-2.0
"""The allocator's peaks by device, kept over resets by the program.

Before torch's own reset functions run, their peaks are folded into ours. The functions are wrapped at torch._C, where
torch's Python code looks them up at each call; the program's view (its peaks start again) stays as it was.
"""

from . import guard, ledger, torchapi
from .state import state

_UNLIMITED = 1 << 40  # bytes: the card of TN_UNLIMITED_CARD
_cards = []  # whether no card is ever full; empty: not yet known


class Device:
    """Peaks and the last readings of one device, in bytes."""

    __slots__ = ("allocated_peak", "reserved_peak", "requested_peak", "allocated", "reserved", "requested", "retries",
                 "ooms", "requested_ever")

    def __init__(self):
        self.allocated_peak = self.reserved_peak = self.requested_peak = 0
        self.allocated = self.reserved = self.requested = self.retries = self.ooms = 0
        self.requested_ever = 0  # all bytes ever asked for: the difference between two steps tells one's volume

    def fold(self, stats):
        """Takes a reading in; True when the allocated or the reserved peak grew, on a card that is never full only the former: there the cache grows at
        any moment, and shows nothing."""
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        requested = stats.get("requested_bytes", {}).get("all", {"peak": 0, "current": 0, "allocated": 0})
        grew = allocated["peak"] > self.allocated_peak or (reserved["peak"] > self.reserved_peak and not cards_are_unlimited())
        self.allocated_peak = max(self.allocated_peak, allocated["peak"])
        self.reserved_peak = max(self.reserved_peak, reserved["peak"])
        self.requested_peak = max(self.requested_peak, requested["peak"])
        self.allocated, self.reserved = allocated["current"], reserved["current"]
        self.requested = requested["current"]
        self.retries, self.ooms = stats.get("num_alloc_retries", 0), stats.get("num_ooms", 0)
        self.requested_ever = requested["allocated"]
        return grew


@guard.alone
def read(everywhere=False):
    """Reads the devices in use (or all); True when a peak grew on one of them."""
    grew = False
    indices = range(state.device_count) if everywhere or not state.peaks else list(state.peaks)
    for index in indices:
        grew = read_device(index) or grew
    return grew


def cards_are_unlimited():
    """True where no card is ever full: nothing there makes PyTorch give back what it only caches. Known once a device is used."""
    if not _cards and state.peaks:
        _cards.append(min(map(torchapi.total_memory, state.peaks)) >= _UNLIMITED)
    return bool(_cards) and _cards[0]


def read_device(index):
    """Reads one device; True when a peak grew. A device that was never used leaves no entry."""
    stats = torchapi.stats(index)
    if not stats:
        return False
    device = state.peaks.get(index)
    if device is None:
        if not stats["reserved_bytes"]["all"]["peak"]:
            return False
        device = state.peaks[index] = Device()
    grew = device.fold(stats)
    state.peak_unshown = state.peak_unshown or grew
    return grew


@guard.guarded
def step_ended(step):
    """Says whether a peak grew in it."""
    step.grew = bool(read())


@guard.guarded
def tell_ledger(step=None):
    """The ledger's counters are raised to what is known."""
    ledger.progress(state.steps, *highest())


def highest():
    """(allocated, reserved) of the worst device."""
    devices = state.peaks.values()
    return max((d.allocated_peak for d in devices), default=0), max((d.reserved_peak for d in devices), default=0)


def volume():
    """All bytes ever asked for, over the devices."""
    return sum(device.requested_ever for device in state.peaks.values())


def around_reset(original):
    """For a function that resets the peaks: they are folded into ours before."""
    fold = guard.guarded(lambda: read(everywhere=True) if state.cuda_initialized else None)

    def reset(*args, **kwargs):
        fold()
        return original(*args, **kwargs)

    reset.__name__ = original.__name__
    reset.__doc__ = original.__doc__
    reset._torchdynamo_disable = True
    return reset


def document():
    """The "devices" of the guest document."""
    return [
        {
            "index": index,
            "allocated_peak": device.allocated_peak,
            "reserved_peak": device.reserved_peak,
            "requested_peak": device.requested_peak,
            "allocated": device.allocated,
            "reserved": device.reserved,
            "retries": device.retries,
            "ooms": device.ooms,
        }
        for index, device in sorted(state.peaks.items())
    ]
