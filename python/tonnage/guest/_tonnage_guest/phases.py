# SPDX-License-Identifier: Apache-2.0
"""What the program is doing: build, load, data, forward, backward, optimizer, evaluation, save, other.

A phase lasts until another is known to begin. Each change is marked for the snapshot and told to the ledger, which keeps
the peak of each phase by itself. The sensors tell of the beginnings: calls.py (forward, evaluation), backward.py,
optimizers.py, loaders.py (data), and torch's functions that open a file (save, load).
"""

import ctypes

from . import events, facts, frames, guard, inputs, metadata, virtual
from .state import state


class _Ledger:
    """The ledger's function for the region that the process is in."""

    __slots__ = ("enter",)

    def __init__(self):
        self.enter = None


_ledger = _Ledger()


def start():
    """Called when CUDA is initialised."""
    _ledger.enter = virtual.function("tn_vgpu_enter_region", ctypes.c_int, ctypes.c_char_p)
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
    metadata.phases.append((metadata.now(), state.steps + 1, name))
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
    if _ledger.enter is not None:
        _ledger.enter((state.named or state.phase or "").encode())


def forward_name(training=True):
    """What a forward pass that begins now is called: evaluation where a program that trains does not build a graph, or
    has its model in eval(), unless that is how it trains."""
    evaluating = state.trains and not (state.torch.is_grad_enabled() and training)
    return "evaluation" if evaluating else "forward"


def _goes_on(args, kwargs):
    """True where a forward pass goes through a module in eval(), that compares pictures, or judges them: it is handed what the graph has
    made so far."""
    return state.phase == "forward" and any(tensor.grad_fn is not None for tensor in inputs.tensors((args, kwargs)))


on_another_try = []  # functions of the frame: a pass begins while an out-of-memory is open


# ---- what the sensors tell ----


@guard.guarded
def call_began(module, args, kwargs, frame):
    """A module or a compiled function is called from outside."""
    name = forward_name(module is None or module.training or facts.trained_in_eval(module) or _goes_on(args, kwargs))
    if state.open_oom is not None:
        for tell in on_another_try:
            tell(frame)
    if name == state.phase and state.open_oom is not None:
        metadata.phases.append((metadata.now(), state.steps + 1, name))  # tried again
    elif name == state.phase and state.trains:
        state.input = None
        return
    enter(name, frame)
    facts.note_call(module, inputs.note_call(module, args, kwargs) or [])


@guard.guarded
def backward_began(frame):
    """The outermost backward pass begins."""
    enter("backward", frame)


@guard.guarded
def backward_ended():
    """It is over."""
    enter("other")


@guard.guarded
def update_began(optimizer, frame):
    """An optimizer is about to make an update."""
    enter("optimizer", frame)


@guard.guarded
def update_ended(optimizer, frame):
    """It has made it."""
    enter("other", frame)


@guard.guarded
def batch_begins(batch):
    """A loader hands a batch out, or ends its epoch instead."""
    enter("other" if batch.ends else "data", batch.frame)


@guard.guarded
def file_opened(phase, frame):
    """torch writes or reads a file."""
    enter(phase, frame)


@guard.guarded
def training_began():
    """The next call is the first of training, whatever was called before."""
    enter("other")


def around_writer(original):
    """For torch's function that opens a file to write to."""
    return _announcing(original, "save")


def around_reader(original):
    """For torch's function that opens a file to read."""
    return _announcing(original, "load")


def _announcing(original, phase):
    def opened(*args, **kwargs):
        events.file_opened(phase, frames.caller())
        return original(*args, **kwargs)

    return opened
