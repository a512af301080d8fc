# SPDX-License-Identifier: Apache-2.0
"""What the program is doing: build, load, data, forward, backward, optimizer, evaluation, save, other.

A phase lasts until another is known to begin. Each change is marked for the snapshot and told to the ledger, which keeps
the peak of each phase by itself. How the beginnings are seen, without a frame of ours in a traceback:

    forward, evaluation   calls.py: a module or a compiled function is called from outside
    backward              graph.py
    optimizer             torch's own global hooks before and after an update
    data                  steps.py, when a loader has handed out a batch
    save, load            torch's functions that open the file
"""

import ctypes

from . import calls, facts, frames, guard, holds, imports, inputs, marks, virtual
from .state import state

_enter_region = None


def install(torch):
    """Called once torch is imported."""
    from torch.optim import optimizer

    optimizer.register_optimizer_step_pre_hook(_update_begins)
    optimizer.register_optimizer_step_post_hook(_update_ended)
    imports.watch("torch.serialization", guard.guarded(_watch_files))
    calls.begins.append(_call_begins)


def start():
    """Called when CUDA is initialised."""
    global _enter_region
    _enter_region = virtual.function("tn_vgpu_enter_region", ctypes.c_int, ctypes.c_char_p)
    enter("build", frames.caller())
    if state.named is not None:
        _tell()


@guard.alone
def enter(name, frame=None):
    """The program is in this phase now; `frame` tells where it was entered first."""
    if name == state.phase:
        return
    state.phase = name
    state.passes += 1
    marks.phases.append((marks.now(), state.steps + 1, name))
    if name not in state.regions:
        place = frames.place(frame) if frame is not None else None
        state.regions[name] = frames.describe(place) if place is not None else None
    if state.named is None:
        _tell()


def name_region(name):
    """The ledger's region is this one from now on, whatever the phase; None: the phase's again."""
    state.named = name
    _tell()


def _tell():
    if _enter_region is not None:
        _enter_region((state.named or state.phase or "").encode())


def forward_name(training=True):
    """What a forward pass that begins now is called: evaluation where a program that trains does not build a graph, or
    has its model in eval(), unless that is how it trains."""
    from . import steps

    evaluating = steps.trains() and not (state.torch.is_grad_enabled() and training)
    return "evaluation" if evaluating else "forward"


@guard.guarded
def _call_begins(module, args, kwargs, frame):
    from . import steps

    name = forward_name(module is None or module.training or facts.trained_in_eval(module))
    if name == state.phase and steps.trains():
        return
    enter(name, frame)
    facts.note_call(module, inputs.note_call(module, args, kwargs) or [])


@guard.guarded
def _update_begins(optimizer, args, kwargs):
    holds.note_optimizer(optimizer)
    holds.look_at_gradients(optimizer)
    enter("optimizer", frames.caller(1))


@guard.guarded
def _update_ended(optimizer, args, kwargs):
    enter("other", frames.caller(1))


def _watch_files(module):
    for name, phase in (("_open_zipfile_writer", "save"), ("_open_zipfile_reader", "load")):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _announcing(original, phase))


def _announcing(original, phase):
    announce = guard.guarded(lambda frame: enter(phase, frame))

    def opened(*args, **kwargs):
        announce(frames.caller())
        return original(*args, **kwargs)

    return opened
