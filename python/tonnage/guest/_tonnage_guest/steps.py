# SPDX-License-Identifier: Apache-2.0
"""What a step is, and counting it.

    optimizer   one update of an optimizer (two optimizers: each update). Updates made inside one backward pass, one
                optimizer a parameter, are one step; so are those that an optimizer makes by others inside its own step
                (ZeroRedundancyOptimizer, torchao's CPUOffloadOptimizer).
    loader      without an optimizer: one pass of a DataLoader
    forward     without either: one call of a module from outside

Passes are counted until an optimizer is made; a compiled function is a module here (calls.py). Counting starts again when
the unit changes.
"""

import sys

from . import calls, collectives, facts, frames, growth, guard, history, imports, inputs, ledger, oom, peaks, phases, record, rehearse
from . import settle, shapes, torchapi, trainers, work, workers
from .state import settings, state

_optimizer_seen = False
_last_backward = -1
_batches = 0
_steps = {}  # code -> is it an optimizer's step
_whole, _parts = None, set()  # an optimizer that steps by others: which call of its step, and who has stepped in it


def on_torch(torch):
    """Called once torch is imported."""
    from torch.optim import optimizer

    optimizer.register_optimizer_step_post_hook(_updated)
    _watch_construction(optimizer.Optimizer)
    imports.watch("torch.utils.data.dataloader", guard.guarded(_watch_loader))
    trainers.install()
    calls.ends.append(_passed)


def _watch_construction(cls):
    # Every optimizer's __init__ calls this method of the base class.
    original = getattr(cls, "_patch_step_function", None)
    if original is None:
        return

    def _patch_step_function(self):
        _constructed(self)
        return original(self)

    cls._patch_step_function = _patch_step_function


@guard.guarded
def _constructed(optimizer):
    global _optimizer_seen
    facts.note_optimizer(optimizer)
    if not _optimizer_seen and state.unit is not None:  # what ran before were trials: warm-up, anchors, checks of autocast
        _begin_counting(None)
        phases.enter("other")  # the next call is the first of training, whatever was called before
    _optimizer_seen = True


def trains():
    """True for a program that has made an optimizer."""
    return _optimizer_seen


def _count_updates(optimizer, args, kwargs):
    global _last_backward
    task = torchapi.in_backward()
    if task != -1:
        if task == _last_backward:
            return
        _last_backward = task
    _constructed(optimizer)  # an optimizer that was made before the hook was there
    if _is_part(optimizer):
        return
    if settings.gpu == "virtual":
        collectives.rest()
    oom.progress()
    rehearse.updated()
    _finished("optimizer", may_stop=True)


_updated = guard.guarded(_count_updates)


def _is_part(optimizer):
    """True for an update inside the step of another optimizer, which counts for it, or another part of which has."""
    global _whole, _parts
    wrapper = getattr(getattr(type(optimizer), "step", None), "__code__", None)
    whole, frame = None, sys._getframe(2)
    while frame is not None:
        if whole is not None and frame.f_code is wrapper:
            return True  # torch's own wrapper around that step: its end will be seen
        if whole is None and frame.f_code.co_name == "step" and _is_step(frame.f_code):
            whole = id(frame), state.backwards  # a later call's frame may have the same address
        frame = frame.f_back
    if whole is not None and whole == _whole and id(optimizer) not in _parts:
        _parts.add(id(optimizer))
        return True
    _whole, _parts = whole, {id(optimizer)}
    return False


def _kinds(cls):
    yield cls
    for kind in cls.__subclasses__():
        yield from _kinds(kind)


def _is_step(code):
    """True for the code of some optimizer's step."""
    if code not in _steps:
        from torch.optim.optimizer import Optimizer

        steps = (vars(cls).get("step") for cls in _kinds(Optimizer))
        codes = {getattr(getattr(step, "__wrapped__", step), "__code__", None) for step in steps}
        _steps[code] = code in codes
    return _steps[code]


def _count_passes(args, kwargs, frame):
    if _optimizer_seen:
        return
    signature = shapes.note_inputs(args, kwargs)
    oom.progress()
    if state.unit != "loader":
        _finished("forward", may_stop=shapes.begins_generation(signature, frame) is not False)


_passed = guard.guarded(_count_passes)


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
        if value and _fetched(iterator, value == 1, frames.caller()):
            raise StopIteration  # the epoch is ended early


@guard.guarded
def _fetched(iterator, first, frame):
    """A batch is there. True when its epoch shall end instead."""
    batch = frame.f_locals.get("data") if frame is not None else None
    new_shape = shapes.note_batch(batch) if frame is not None else False
    inputs.note_batch(batch)
    state.passes += 1
    if not state.cuda_initialized or frame is None:
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


def _begin_counting(unit):
    state.unit = unit
    state.steps = 0
    settle.restart()
    growth.restart()


def _finished(unit, may_stop):
    """A step is over."""
    if state.unit != unit:
        _begin_counting(unit)
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
