# SPDX-License-Identifier: Apache-2.0
"""How the process ends, and whether an out-of-memory ended it.

It did when
  - an uncaught exception is one, or was raised `from` one;
  - an uncaught exception was raised while one was handled, or comes after it, and it is still open (oom.py): a program
    that went on with a smaller batch and failed of something else did not fail of that;
  - sys.exit or os._exit with another status than 0 comes while one is open;
  - a test runner (pytest, unittest) reports a failed test because of one. One that a passing test expected, or that a
    failing test got over, is handled: the runner's own status is not about it.
An open one with status 0 is left open: the program dealt with it, or hid it; the supervisor says so.
Status of a `raise SystemExit(n)` is unknown here; the supervisor knows it.
"""

import atexit
import gc
import os
import re
import sys
import threading
import time

from . import ahead, fast_forward, frames, guard, history, imported, imports, oom, peaks, ranks, reads, record, relayed, step_growth
from . import work
from .state import settings, state

_TEXTS = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
          "CUDNN_STATUS_ALLOC_FAILED", "cuda runtime error (2) : out of memory")
_MAX_CHAIN = 50
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")  # colours, links and other sequences


class _Seen:
    """What is known of the end before it comes."""

    __slots__ = ("exception", "tests_are_run")

    def __init__(self):
        self.exception = None  # id of the uncaught one that was looked at: it is not kept, with all that its frames hold
        self.tests_are_run = False  # by pytest or unittest, which tell of each


_seen = _Seen()


def install():
    """Called once torch is imported."""
    sys.excepthook = _chain(sys.excepthook)
    threading.excepthook = _chain_thread(threading.excepthook)
    sys.exit = _wrap_exit(sys.exit, _exit_status)
    os._exit = _wrap_exit(os._exit, _ends_at_once)
    atexit.register(_at_exit)
    imports.watch("_pytest.reports", guard.guarded(_watch_pytest))
    imports.watch("unittest.result", guard.guarded(_watch_unittest))


def find_oom(error):
    """The out-of-memory that an exception is or reports, or None: itself, one of its causes, or the one that was handled
    as it was raised, unless the program had gone on by then."""
    seen, reports = 0, True
    while error is not None and seen < _MAX_CHAIN:
        if is_oom(error):
            return error if reports or not oom.survived() else None
        reports = reports and error.__cause__ is not None
        error = error.__cause__ or error.__context__
        seen += 1
    return None


def is_oom(error):
    """True for an exception that says that the device's memory is full."""
    kinds = getattr(state.torch, "OutOfMemoryError", None), getattr(state.torch.cuda, "OutOfMemoryError", None)
    if isinstance(error, tuple(kind for kind in kinds if isinstance(kind, type))):
        return True
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return any(part in text for part in _TEXTS)


def note_exception(error):
    """An exception that ends the program, or that a test failed with."""
    state.failed_at_ns = state.failed_at_ns or time.monotonic_ns()
    cause = find_oom(error)
    if cause is None:
        state.exception = describe(error)
    if cause is not None or (oom.is_open() and not isinstance(error, KeyboardInterrupt)):
        _ended_by_oom(cause)
    elif not isinstance(error, KeyboardInterrupt):
        fast_forward.broke(state.exception)


def _ended_by_oom(cause):
    if state.result_lost:
        return
    found = state.open_oom
    if found is None or (oom.survived() and not _is_of_allocator(cause)):
        found = _from_exception(cause)
        oom.note(found)
    if cause is not None:
        found["message"] = _first_line(cause)
    state.final_oom = found
    state.oom_ended_process = True
    oom.count_handled()


def _is_of_allocator(error):
    """PyTorch's allocator raised it, so that the observer has seen it."""
    kind = getattr(state.torch, "OutOfMemoryError", None) or getattr(state.torch.cuda, "OutOfMemoryError", ())
    return isinstance(error, kind)


def _from_exception(cause):
    """A record for an out-of-memory that no observer saw: it came from CUDA or a library, not from the allocator."""
    found = oom.describe(None)
    found["at"] = frames.place_of_traceback(cause.__traceback__)
    return found


def request_failed(found):
    """A server's request ran out of memory and was not answered well: the server may go on, the request has failed."""
    state.final_oom = found
    state.oom_ended_process = True
    oom.count_handled()


def describe(error):
    """The "exception" of the guest document."""
    message, place = relayed.first(_words(error)) or (_first_line(error), None)
    return {"type": type(error).__name__, "message": message[:1000],
            "at": place or frames.place_of_traceback(error.__traceback__)}


def _words(error):
    return _TERMINAL.sub("", str(error)).strip()


def _first_line(error):
    return next(iter(_words(error).splitlines()), "")[:1000]


def _chain(previous):
    def excepthook(kind, error, trace):
        _uncaught(error)
        if error is not None:
            error.__traceback__ = trace = frames.strip_own(trace)
        previous(kind, error, trace)

    return excepthook


def _chain_thread(previous):
    def excepthook(args):
        if args.exc_type is not SystemExit:
            _uncaught_in_thread(args.exc_value)
        previous(args)

    return excepthook


@guard.guarded
def _uncaught(error):
    _seen.exception = id(error)
    if not isinstance(error, SystemExit):
        note_exception(error)
        record.write_now()


@guard.guarded
def _uncaught_in_thread(error):
    # The process goes on: only an out-of-memory is taken down, and progress may still follow it.
    cause = find_oom(error)
    if cause is not None and state.open_oom is not None:
        state.open_oom["message"] = _first_line(cause)


def _wrap_exit(original, note):
    def leave(*args):
        note(args[0] if args else None)
        return original(*args)

    leave.__name__ = original.__name__
    leave.__doc__ = original.__doc__
    return leave


def _leaves():
    """Where this thread calls for the end of the process; the last such call is the one."""
    frame = frames.place(frames.caller(2))
    state.left_at = frames.describe(frame) if frame is not None else None


@guard.guarded
def _exit_status(status):
    _leaves()
    if status in (None, 0):
        return
    if state.exception is None and not state.oom_ended_process:
        state.failed_at_ns = time.monotonic_ns()  # the last such call is the one
    if oom.is_open() and not _seen.tests_are_run:
        _ended_by_oom(None)
    elif not state.oom_ended_process:
        fast_forward.exited(status)


@guard.guarded
def _ends_at_once(status):
    _exit_status(status)
    settle_accounts()


def _at_exit():
    _final()


@guard.guarded
def _final():
    last = getattr(sys, "last_value", None)
    if last is not None and id(last) != _seen.exception and not isinstance(last, SystemExit):
        note_exception(last)  # another excepthook took our place
    settle_accounts()
    reads.detach()
    ranks.detach()  # C++ objects that go after the interpreter may wait for other ranks
    if settings.trial or state.stopped is not None or not settings.ends_in_full:
        gc.freeze()  # no search for cycles at the end (doc/design/0005-guest-hook.md): 0.7 s with torch and its compiler imported


def settle_accounts():
    """Everything that is known is written."""
    if state.cuda_initialized:
        peaks.read(everywhere=True)
        peaks.tell_ledger()
        step_growth.finish()
        history.finish()
        guard.alone(reads.finish)()
        work.finish()
    if state.torch is not None:
        ahead.finish()
    if settings.modules and state.armed:
        imported.tell(settings.run)
    record.write_now()


@guard.guarded
def cell_ended(cell, error):
    """A cell of a notebook is over: IPython shows its error, and excepthook is not called."""
    if error is None or cell.may_fail:
        if state.open_oom is not None:
            oom.progress()
    elif state.torch is None:
        state.exception = describe(error) if not cell.goes_on else None
    elif not isinstance(error, SystemExit) and (not cell.goes_on or find_oom(error) is not None):
        note_exception(error)
    if error is not None:
        _seen.exception = id(error)


def _watch_pytest(module):
    cls = getattr(module, "TestReport", None)
    original = getattr(cls, "from_item_and_call", None)
    if original is None:
        return

    def from_item_and_call(kind, item, call):
        report = original.__func__(kind, item, call)
        if report.outcome == "failed" and call.excinfo is not None:
            _test_failed(call.excinfo.value)
        _test_ended()
        return report

    cls.from_item_and_call = classmethod(from_item_and_call)


def _watch_unittest(module):
    cls = module.TestResult
    original = cls.addError

    def addError(self, test, err):
        _test_failed(err[1])
        return original(self, test, err)

    cls.addError = addError
    stop = cls.stopTest

    def stopTest(self, test):
        _test_ended()
        return stop(self, test)

    cls.stopTest = stopTest


@guard.guarded
def _test_ended():
    # What the test did not fail of, it expected or got over.
    _seen.tests_are_run = True
    if state.open_oom is not None:
        oom.progress()
        record.write_now()


@guard.guarded
def _test_failed(error):
    cause = find_oom(error)
    if cause is not None:
        _ended_by_oom(cause)
        record.write_now()
