# SPDX-License-Identifier: Apache-2.0
"""What a step is, and counting it.

    optimizer   one update of an optimizer (two optimizers: each update). Updates made inside one backward pass, one
                optimizer a parameter, are one step.
    loader      without an optimizer: one pass of a DataLoader
    forward     without either: one call of a module that no other module called

The last two are seen through a global forward hook, which sits there only until an optimizer is made: programs that
train have none in their modules' way. Nor have programs that compile a module, since torch warns of global hooks then:
their passes are seen by the loader only. Counting starts again when the unit changes.
"""

import functools
import sys

from . import collectives, growth, guard, history, imports, ledger, oom, peaks, phases, record, rehearse, settle, shapes, torchapi
from . import trainers, work, workers
from .state import settings, state

_forward_hook = None
_optimizer_seen = False
_module_compiled = False
_last_backward = -1
_batches = 0
_call_code = None


def on_torch(torch):
    """Called once torch is imported."""
    from torch.optim import optimizer

    optimizer.register_optimizer_step_post_hook(_updated)
    _watch_construction(optimizer.Optimizer)
    imports.watch("torch.utils.data.dataloader", guard.guarded(_watch_loader))
    trainers.install()
    imports.watch("torch._dynamo.eval_frame", guard.guarded(_watch_compiler))


def on_cuda():
    """Called when CUDA is initialised: passes count from here on, unless there is an optimizer."""
    global _forward_hook, _call_code
    if _optimizer_seen or _module_compiled or _forward_hook is not None:
        return
    from torch.nn.modules import module

    _call_code = module.Module._call_impl.__code__
    _forward_hook = module.register_module_forward_hook(_passed, with_kwargs=True)


def stop_watching_modules():
    """Takes the global forward hook away."""
    global _forward_hook
    if _forward_hook is not None:
        from torch.nn.modules import module

        _forward_hook.remove()
        # torch leaves this entry behind, and takes it for a global hook
        getattr(module, "_global_forward_hooks_with_kwargs", {}).pop(_forward_hook.id, None)
        _forward_hook = None


def _watch_construction(cls):
    # Every optimizer's __init__ calls this method of the base class.
    original = getattr(cls, "_patch_step_function", None)
    if original is None:
        return

    def _patch_step_function(self):
        _constructed()
        return original(self)

    cls._patch_step_function = _patch_step_function


@guard.guarded
def _constructed():
    global _optimizer_seen
    _optimizer_seen = True
    stop_watching_modules()


def _watch_compiler(module):
    cls = getattr(module, "OptimizedModule", None)
    if cls is None:
        return
    original = cls.__init__

    def __init__(self, *args, **kwargs):
        _compiled()
        original(self, *args, **kwargs)

    cls.__init__ = functools.wraps(original)(__init__)


@guard.guarded
def _compiled():
    global _module_compiled
    _module_compiled = True
    stop_watching_modules()
    phases.stop_watching_modules()


def trains():
    """True for a program that has made an optimizer."""
    return _optimizer_seen


def compiles():
    """True for a program that has compiled a module: torch warns of global hooks then."""
    return _module_compiled


def _count_updates(optimizer, args, kwargs):
    global _last_backward
    task = torchapi.in_backward()
    if task != -1:
        if task == _last_backward:
            return
        _last_backward = task
    stop_watching_modules()
    if settings.gpu == "virtual":
        collectives.rest()
    oom.progress()
    rehearse.updated()
    _finished("optimizer", may_stop=True)


_updated = guard.guarded(_count_updates)


def _count_passes(module, args, kwargs, output):
    if _is_nested(sys._getframe(2)):
        return
    signature = shapes.note_inputs(args, kwargs)
    oom.progress()
    if state.unit != "loader":
        _finished("forward", may_stop=shapes.begins_generation(signature, sys._getframe(2)))


_passed = guard.guarded(_count_passes)


def _is_nested(frame):
    """True when, above the module call that ended just now, there is another one on the stack."""
    seen = 0
    while frame is not None:
        if frame.f_code is _call_code:
            seen += 1
            if seen == 2:
                return True
        frame = frame.f_back
    return False


def _watch_loader(module):
    cls = getattr(module, "_BaseDataLoaderIter", None)
    if cls is not None and "_num_yielded" not in cls.__dict__:
        cls._num_yielded = _Yielded()
        workers.watch(module)


class _Yielded:
    """Stands for the iterator's own counter `_num_yielded`, which it raises once a batch is there. A wrapped __next__
    would show in the tracebacks of data sets that raise."""

    def __get__(self, iterator, owner=None):
        return self if iterator is None else iterator.__dict__["_num_yielded"]

    def __set__(self, iterator, value):
        iterator.__dict__["_num_yielded"] = value
        if value and _fetched(iterator, value == 1, sys._getframe(1)):
            raise StopIteration  # the epoch is ended early


@guard.guarded
def _fetched(iterator, first, frame):
    """A batch is there. True when its epoch shall end instead."""
    new_shape = shapes.note_batch(frame.f_locals.get("data"))
    if not state.cuda_initialized:
        return False
    before = state.phase
    if not _optimizer_seen:
        _count_batches()
    ends = rehearse.fetched(iterator, frame, first, new_shape, before)
    if history.wanted():
        phases.enter("other" if ends else "data", frame)
    settle.after_batch()
    return ends


def _count_batches():
    global _batches
    _batches += 1
    if _batches >= 2:
        _finished("loader", may_stop=True)


def _finished(unit, may_stop):
    """A step is over."""
    if state.unit != unit:
        state.unit = unit
        state.steps = 0
        settle.restart()
        growth.restart()
    state.steps += 1
    ledger.count_pass()
    if not state.cuda_initialized:
        return
    work.step_ended(state.steps)
    grew = peaks.read()
    history.step_ended(grew)
    ledger.progress(state.steps, *peaks.highest())
    new_input = shapes.note_volume(peaks.volume())
    if grew:
        record.write_now()
    else:
        record.write_sometimes()
    growth.after_step(may_stop, unit == "forward")
    settle.after_step(new_input, may_stop)
