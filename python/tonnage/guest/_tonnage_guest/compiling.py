# SPDX-License-Identifier: Apache-2.0
"""Tells the supervisor while this process compiles or tunes kernels, since the time limit waits for that.

While it does, the file guest/<pid>.compiling exists in the run's folder; the supervisor looks for it, and for children that are
compilers (src/supervise/compiling.c). Known are: Dynamo, by torch's own handler of compilations, which covers everything that a
backend does in it (AOTAutograd, Inductor, max-autotune), the backward pass that is compiled later and the recording of
CUDA graphs; the import of such a compiler, which takes seconds; Inductor's tuning of a kernel at its first call, and its ahead-of-time compiler; Triton's compiler, and a trial of
a configuration by Triton's autotuner.

Invariant: the file is there exactly while a thread of this process is between begin() and its end().
"""

import functools
import os
import threading

from . import guard, imports
from .state import settings, state

_open, _close, _unlink = os.open, os.close, os.unlink
_COMPILERS = ("torch._dynamo", "torch._inductor.compile_fx", "triton")  # importing one takes seconds


def install():
    """Called once torch is imported."""
    for name in _COMPILERS:
        imports.around(name, begin, end)
    imports.watch("triton.compiler.compiler", guard.guarded(_around_function("compile")))
    imports.watch("triton.runtime.autotuner", guard.guarded(_around_methods("Autotuner", "_bench")))


@guard.guarded
def begin(*_):
    """This thread compiles from now on."""
    if state.pid != os.getpid():
        return
    thread, before = threading.get_ident(), len(state.compiling)
    state.compiling[thread] = state.compiling.get(thread, 0) + 1
    if before == 0:
        _close(_open(_path(), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


@guard.guarded
def end(*_):
    """It does no longer, unless begin() was called more often."""
    thread = threading.get_ident()
    depth = state.compiling.pop(thread, 0) - 1
    if depth > 0:
        state.compiling[thread] = depth
    elif depth == 0 and not state.compiling:
        _unlink(_path())


def _path():
    return os.path.join(settings.run, "guest", "%d.compiling" % state.pid)


def watch_dynamo(module, name):
    """Attaches to the handler of compilations. Registered callbacks would be gone after torch._dynamo.reset()."""
    handler = getattr(module, name)
    starts, ends = getattr(handler, "run_start_callbacks", None), getattr(handler, "run_end_callbacks", None)
    if starts is None or ends is None:
        return False

    def run_start_callbacks(*args):
        begin()
        return starts(*args)

    def run_end_callbacks(*args):
        end()
        return ends(*args)

    handler.run_start_callbacks, handler.run_end_callbacks = run_start_callbacks, run_end_callbacks
    return True


def _around_function(name):
    def watch(module):
        original = getattr(module, name, None)
        if callable(original):
            setattr(module, name, around(original))

    return watch


def _around_methods(cls, *names):
    def watch(module):
        owner = getattr(module, cls, None)
        for name in names:
            original = getattr(owner, name, None)
            if callable(original):
                setattr(owner, name, around(original))

    return watch


def around(original):
    """For a function during which this thread compiles."""

    @functools.wraps(original)
    def compiling(*args, **kwargs):
        begin()
        try:
            return original(*args, **kwargs)
        finally:
            end()

    return compiling
