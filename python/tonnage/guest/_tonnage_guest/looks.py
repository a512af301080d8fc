# SPDX-License-Identifier: Apache-2.0
"""Looks at the samples of a data set in a forked process, for a time: nothing that `__getitem__` does is done here.

The process is a grandchild with one thread, so that no wait of the program meets it; it writes what it finds to memory that
both have, and ends by an alarm at the latest. It gives up, with a reason, where a sample touches the card or the network, or
where sample after sample raises.
"""

import json
import os
import signal
import struct
import sys
import time
import warnings

from . import lengths
from .state import state

_ROW = struct.Struct("<IIQ")  # index, number of the path, count
_FLUSH = 0.05  # seconds
_MOST_ERRORS = 16  # in a row
_STILL = 0.005
_clock = time.monotonic
_NETWORK_FILES = ("nfs", "cifs", "smb", "ceph", "lustre", "glusterfs", "fuse.", "9p", "afs", "beegfs", "gpfs")
_CARD, _NETWORK, _NETWORK_FILE = "its samples touch the card", "its samples open connections", "its samples are files of the network"


class _GivesUp(BaseException):
    """Nothing in a data set may catch it."""


class Look:
    """A look that is going on."""

    __slots__ = ("count", "rows", "words", "until", "taken", "told", "last", "paths", "ended")

    def __init__(self, count, seconds):
        self.count = count
        self.rows = os.memfd_create("tonnage-rows", os.MFD_CLOEXEC)
        self.words = os.memfd_create("tonnage-words", os.MFD_CLOEXEC)
        self.until = _clock() + seconds
        self.taken = self.told = 0  # bytes
        self.last = -1  # the sample whose rows were taken last: others of it may still come
        self.paths = []
        self.ended = None  # a sentence why it gave up, "" when it was done

    def take(self, found, wait=False):
        """Adds what has been found so far to Lengths; with `wait`, when the look is over. True when it is."""
        while True:
            over = self._take_words()
            self._take_rows(found)
            late = _clock() > self.until + 2 * _FLUSH
            if over or late:
                self._close()
                return True
            if not wait:
                return False
            time.sleep(_STILL)

    def _take_words(self):
        text = os.pread(self.words, 1 << 20, self.told)
        whole = text[:text.rfind(b"\n") + 1]
        self.told += len(whole)
        for line in whole.splitlines():
            word = json.loads(line)
            if "end" in word:
                self.ended = word["end"]
            else:
                self.paths.append((word["path"], word["unit"]))
        return self.ended is not None

    def _take_rows(self, found):
        data = os.pread(self.rows, 64 << 20, self.taken)
        whole = len(data) // _ROW.size * _ROW.size
        for index, path, count in _ROW.iter_unpack(data[:whole]):
            if path < len(self.paths):
                found.column(*self.paths[path])[index] = count
            if index != self.last:
                found.looked, self.last = found.looked + 1, index
        self.taken += whole

    def _close(self):
        if self.rows >= 0:
            os.close(self.rows)
            os.close(self.words)
            self.rows = self.words = -1


def why_not(dataset):
    """Why a data set is not to be looked at, in words; None where it is."""
    if not hasattr(os, "memfd_create") or not hasattr(dataset, "__getitem__"):
        return "its samples cannot be asked for by number"
    held = list(vars(dataset).values())[:64] if hasattr(dataset, "__dict__") else []
    held += [item for value in held if isinstance(value, (list, tuple)) for item in value[:1]]
    if any(isinstance(value, state.torch.Tensor) and value.is_cuda for value in held):
        return _CARD
    return None


def begin(dataset, count, seconds):
    """A Look whose process has been started."""
    look = Look(count, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads: this one lives as a loader's worker does
        child = os.fork()
        if child == 0:
            try:
                if os.fork() == 0:
                    _run(look, dataset, seconds)
            finally:
                os._exit(0)
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass  # the program ignores SIGCHLD
    return look


# ---- in the forked process ----


def _run(look, dataset, seconds):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)
    end = "an error of ours"
    try:
        _be_quiet()
        sys.addaudithook(_watching(_network_folders()))
        state.torch.set_num_threads(1)
        state.torch.cuda._lazy_init = _touch_card
        end = _go_through(look, dataset)
    except _GivesUp as reason:
        end = str(reason)
    except BaseException as error:
        end = "%s: %s" % (type(error).__name__, str(error)[:200])
    os.write(look.words, json.dumps({"end": end}).encode() + b"\n")


def _be_quiet():
    os.nice(19)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _touch_card(*args, **kwargs):
    raise _GivesUp(_CARD)


def _network_folders():
    try:
        with open("/proc/self/mounts") as file:
            rows = [line.split() for line in file]
    except OSError:
        return ()
    return tuple(row[1].rstrip("/") + "/" for row in rows
                 if len(row) > 2 and row[1] != "/" and row[2].startswith(_NETWORK_FILES))


def _watching(folders):
    def hook(event, arguments):
        if event == "socket.connect":
            raise _GivesUp(_NETWORK)
        if event == "open" and folders and isinstance(arguments[0], str):
            if os.path.abspath(arguments[0]).startswith(folders):
                raise _GivesUp(_NETWORK_FILE)

    return hook


def _go_through(look, dataset):
    paths, rows, errors = {}, [], 0
    flushed = _clock()
    for index in _spread(look.count):
        try:
            found = lengths.measure(_on_host(dataset[index]))
            errors = 0
        except Exception as error:
            found, errors = (), errors + 1
            if errors >= _MOST_ERRORS:
                return "its samples raise %s" % type(error).__name__
        for path, unit, count in found:
            number = paths.get((path, unit))
            if number is None and len(paths) < 64:
                number = paths[path, unit] = len(paths)
                os.write(look.words, json.dumps({"path": path, "unit": unit}).encode() + b"\n")
            if number is not None:
                rows.append(_ROW.pack(index, number, count))
        now = _clock()
        if now - flushed > _FLUSH or now > look.until:
            os.write(look.rows, b"".join(rows))
            rows.clear()
            flushed = now
            if now > look.until:
                return ""
    os.write(look.rows, b"".join(rows))
    return ""


def _on_host(sample, depth=0):
    """The sample; a tensor of the card in it ends the look."""
    if getattr(sample, "is_cuda", False) is True:
        raise _GivesUp(_CARD)
    if depth < 2 and isinstance(sample, (list, tuple)):
        for item in sample[:8]:
            _on_host(item, depth + 1)
    elif depth < 2 and isinstance(sample, dict):
        for item in list(sample.values())[:8]:
            _on_host(item, depth + 1)
    return sample


def _spread(count):
    """All numbers below count, each part of them spread over the whole."""
    step = max(1, int(count * 0.6180339887))
    while _divisor(step, count) != 1:
        step += 1
    index = 0
    for _ in range(count):
        yield index
        index = (index + step) % count


def _divisor(a, b):
    while b:
        a, b = b, a % b
    return a
