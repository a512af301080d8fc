# SPDX-License-Identifier: Apache-2.0
"""The guest's words in the run's ledger (src/device/ledger.h): thirteen 64-bit words at offset 64.

Each word is written by one aligned store (a memoryview of native 64-bit items copies eight bytes at once), so the
supervisor reads whole values without a lock. Several processes of a run write the same words: counters only grow.
"""

import mmap
import os

_OFFSET = 64
_LOOKS = 40  # one word, which the supervisor alone writes: its looks at the computer's memory
_ASKED = 56  # one word, not 0 until the supervisor takes it: all pages are to be walked
_STEPS, _ALLOCATED, _RESERVED, _STOP_REASON, _OOMS, _STOP_PID, _PASSES, _COMPILED, _EARLY, _NEWS, _NEWS_STEP, _NEWS_EPOCH, _SETTLED_AFTER = range(13)
_ALL_NEWS = 2  # in _NEWS; 1: the step alone
SETTLED, LIMIT = 1, 2


class _Page:
    """The mapped words."""

    __slots__ = ("words", "looks", "asked")

    def __init__(self):
        self.words = self.looks = self.asked = None


_page = _Page()


def attach(folder):
    """Maps the ledger of the run. Without one (a hook started by hand) the words go nowhere."""
    try:
        handle = os.open(os.path.join(folder, "ledger"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        page = mmap.mmap(handle, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(handle)
    _page.words = memoryview(page)[_OFFSET:_OFFSET + 104].cast("Q")
    _page.looks = memoryview(page)[_LOOKS:_LOOKS + 8].cast("Q")
    _page.asked = memoryview(page)[_ASKED:_ASKED + 8].cast("Q")


def progress(steps, allocated_peak, reserved_peak):
    """Raises the counters to these values."""
    if _page.words is None:
        return
    for index, value in ((_STEPS, steps), (_ALLOCATED, allocated_peak), (_RESERVED, reserved_peak)):
        if value > _page.words[index]:
            _page.words[index] = value


def count_pass():
    """One more complete step or pass, whatever counts as a step."""
    if _page.words is not None:
        _page.words[_PASSES] += 1


def compiled():
    """Seconds that the run spent compiling, as the supervisor has counted them; the time limit waits for these."""
    return _page.words[_COMPILED] / 1000.0 if _page.words is not None else 0.0


def host_looks():
    """How often the supervisor has looked at the computer's memory."""
    return _page.looks[0] if _page.looks is not None else 0


def ask_for_a_look():
    """Asks the supervisor to look at once, and at all pages of every process."""
    if _page.asked is not None:
        _page.asked[0] = 1


def is_asked():
    """The supervisor has not begun yet what it was asked for."""
    return _page.asked is not None and _page.asked[0] != 0


def tell_early():
    """All that was seen is written: whoever waits for this run may read it."""
    if _page.words is not None:
        _page.words[_EARLY] = 1


def tell_settled(step):
    """Memory has settled, and brought something new in this step last."""
    if _page.words is not None:
        _page.words[_SETTLED_AFTER] = step


def news():
    """(all, step, epoch) of TONNAGE_LAST_NEWS, as far as the supervisor has told them; `all` says that nothing follows, the others are numbers,
    or None where that is unknown. None before it has told anything."""
    told = _page.words[_NEWS] if _page.words is not None else 0
    if not told:
        return None
    return told == _ALL_NEWS, _page.words[_NEWS_STEP] or None, _page.words[_NEWS_EPOCH] or None


def count_out_of_memory():
    """One more out-of-memory was seen by an observer."""
    if _page.words is not None:
        _page.words[_OOMS] += 1


def ask_to_stop(reason):
    """Asks the supervisor to end the program, unless another process has asked already. False without a ledger."""
    if _page.words is None:
        return False
    if _page.words[_STOP_REASON] == 0:
        _page.words[_STOP_PID] = os.getpid()
        _page.words[_STOP_REASON] = reason
    return True
