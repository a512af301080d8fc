# SPDX-License-Identifier: Apache-2.0
"""How many bytes of PyTorch's allocator are free once something has been let go of, and nothing else: measured in a forked child.

The child collects garbage, lets go, collects again, and reads the allocator: what is freed goes to PyTorch's cache, which calls nothing of CUDA.
Nothing that it does is seen outside: its descriptors are closed but for the pipe, files cannot be removed, finalisers are forgotten, and it leaves by
_exit. The functions of os are taken at import time, before anybody replaces them.
"""

import gc
import os
import select
import signal
import sys
import time
import warnings
import weakref

from . import guard, torchapi
from .state import state

_SECONDS = 10.0
_clock = time.monotonic
_fork, _exit, _kill, _read, _write, _pipe, _close = os.fork, os._exit, os.kill, os.read, os.write, os.pipe, os.close
_CHANGES_FILES = ("unlink", "remove", "rmdir", "rename", "replace", "removedirs", "truncate", "kill", "killpg", "system", "mkdir")


@guard.alone
def measure(first, let_go):
    """Bytes that are free after let_go(); `first` (or None) is called before, and does not count. None: unknown."""
    devices = state.device_count

    def answer():
        if first is not None:
            first()
        gc.collect()
        before = _allocated(devices)
        let_go()
        gc.collect()
        return b"%d" % (before - _allocated(devices))

    text = ask(answer, _SECONDS)
    return int(text) if text else None


def ask(answer, seconds):
    """What answer() returns in a forked child, bytes; None where it does not within so many seconds."""
    reader, writer = _pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that other threads are not in the child is meant
            child = _fork()
        if child == 0:
            _answer(writer, answer)
        _close(writer)
        writer = None
        return _answer_of(reader, child, seconds)
    except OSError:
        return None  # no process more, no descriptors
    finally:
        _close(reader)
        if writer is not None:
            _close(writer)


def _answer(writer, answer):
    """In the child; never returns."""
    try:
        _leave_no_trace(writer)
        view = memoryview(answer() + b".")
        while view:
            view = view[_write(writer, view):]
    except BaseException:
        pass
    finally:
        _exit(0)


def _leave_no_trace(writer):
    os.closerange(0, writer)
    os.closerange(writer + 1, 1 << 16)
    for name in _CHANGES_FILES:
        setattr(os, name, _refuse)
    weakref.finalize._registry.clear()
    sys.unraisablehook = _refuse
    signal.set_wakeup_fd(-1)


def _refuse(*args, **kwargs):
    raise OSError("not in this process")


def _allocated(devices):
    stats = (torchapi.stats(index) for index in range(devices))
    return sum(found["allocated_bytes"]["all"]["current"] for found in stats if found)


def _answer_of(reader, child, seconds):
    text, until = b"", _clock() + seconds
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, until - _clock()))
        part = _read(reader, 1 << 16) if ready else b""
        text += part
        if not part:
            break
    if not ready:
        _kill(child, signal.SIGKILL)
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass  # the program waits for all children itself
    return text[:-1] if text.endswith(b".") else None
