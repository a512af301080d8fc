# SPDX-License-Identifier: Apache-2.0
"""What the program is doing: build, load, data, forward, backward, optimizer, evaluation, save, other.

A phase lasts until another is known to begin. Each change is marked for the snapshot and told to the ledger, which keeps
the peak of each phase by itself. How the beginnings are seen, without a frame of ours in a traceback:

    forward, evaluation   a global forward pre-hook, which acts on calls of modules that no other module called. It goes
                          away, in a program that trains, as such a call begins, and comes back with the next other
                          phase: the modules inside are called as without us
    backward              graph.py
    optimizer             torch's own global hooks before and after an update
    data                  steps.py, when a loader has handed out a batch
    save, load            torch's functions that open the file
"""

import ctypes
import sys

from . import frames, guard, holds, imports, inputs, marks, virtual
from .state import state

_FORWARDS = ("forward", "evaluation")
_enter_region = None
_forward_hook = None
_call_code = None


def install(torch):
    """Called once torch is imported."""
    from torch.optim import optimizer

    optimizer.register_optimizer_step_pre_hook(_update_begins)
    optimizer.register_optimizer_step_post_hook(_update_ended)
    imports.watch("torch.serialization", guard.guarded(_watch_files))


def start():
    """Called when CUDA is initialised."""
    global _enter_region
    _enter_region = virtual.function("tn_vgpu_enter_region", ctypes.c_int, ctypes.c_char_p)
    enter("build", sys._getframe(1))
    if state.named is not None:
        _tell()


def watch_modules():
    """Puts the forward pre-hook there."""
    global _forward_hook, _call_code
    from . import steps

    if _forward_hook is None and not steps.compiles():
        from torch.nn.modules import module

        _call_code = module.Module._call_impl.__code__
        _forward_hook = module.register_module_forward_pre_hook(_called)


def stop_watching_modules():
    """Takes it away: torch.compile warns of global hooks."""
    global _forward_hook
    if _forward_hook is not None:
        _forward_hook.remove()
        _forward_hook = None


def enter(name, frame=None):
    """The program is in this phase now; `frame` tells where it was entered first."""
    if name == state.phase:
        return
    state.phase = name
    if name not in _FORWARDS:
        watch_modules()
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
    """What a forward pass is called now: evaluation where a program that trains does not build a graph."""
    from . import steps

    evaluating = steps.trains() and not (state.torch.is_grad_enabled() and training)
    return "evaluation" if evaluating else "forward"


def is_nested(frame):
    """True when, above the module call that the frame stands in, there is another one on the stack."""
    seen = 0
    while frame is not None:
        if frame.f_code is _call_code:
            seen += 1
            if seen == 2:
                return True
        frame = frame.f_back
    return False


def _module_called(module, args):
    from . import steps

    frame = sys._getframe(2)
    if is_nested(frame) or state.in_backward:
        return
    if steps.trains():
        stop_watching_modules()
    enter(forward_name(module.training), frame)
    inputs.note_call(args, frame)


_called = guard.guarded(_module_called)


@guard.guarded
def _update_begins(optimizer, args, kwargs):
    holds.note_optimizer(optimizer)
    holds.look_at_gradients(optimizer)
    enter("optimizer", sys._getframe(2))


@guard.guarded
def _update_ended(optimizer, args, kwargs):
    enter("other", sys._getframe(2))


def _watch_files(module):
    for name, phase in (("_open_zipfile_writer", "save"), ("_open_zipfile_reader", "load")):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _announcing(original, phase))


def _announcing(original, phase):
    announce = guard.guarded(lambda frame: enter(phase, frame))

    def opened(*args, **kwargs):
        announce(sys._getframe(1))
        return original(*args, **kwargs)

    return opened
