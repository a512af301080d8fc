# SPDX-License-Identifier: Apache-2.0
"""No error of ours reaches the program: the first one disarms the hook with one line on stderr, the program goes on.

`on_disarm` holds what other parts want undone then. Only Exception is caught: Ctrl-C belongs to the program.
"""

import functools
import gc
import sys

from .state import state

on_disarm = []


def guarded(function):
    """Makes `function` a callback that is silent when disarmed and never raises. Returns None in both cases."""

    def call(*args):
        if not state.armed:
            return None
        try:
            return function(*args)
        except Exception as error:
            disarm(error)
            return None

    # torch.compile must not trace into a callback of ours.
    call._torchdynamo_disable = True
    call.__name__ = function.__name__
    return call


def uncollected(function):
    """For functions that make many objects, none of them garbage: the collector, which would go through the whole
    program's for them, waits until they are done."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return call


def disarm(error):
    """Stops recording for good in this process and says so, once."""
    if state.hook_error is not None:
        return
    line = "%s: %s" % (type(error).__name__, " ".join(str(error).split()))
    state.hook_error = line[:300]
    where = _place(error)
    try:
        sys.stderr.write("tonnage: the hook stopped recording: %s%s\n" % (state.hook_error, where))
    except Exception:
        pass
    for undo in on_disarm:
        try:
            undo()
        except Exception:
            pass
    state.armed = False


def _place(error):
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return " (%s:%d)" % (trace.tb_frame.f_code.co_filename.rpartition("/")[2], trace.tb_lineno)
