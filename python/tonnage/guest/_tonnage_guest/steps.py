# SPDX-License-Identifier: Apache-2.0
"""What a step is, and counting it.

    optimizer   one update of an optimizer (two optimizers: each update). Updates made inside one backward pass, one
                optimizer a parameter, are one step; so are those that an optimizer makes by others inside its own step
                (ZeroRedundancyOptimizer, torchao's CPUOffloadOptimizer).
    loader      without an optimizer: one pass of a DataLoader
    forward     without either: one call of a module from outside
    request     of a server that requests are sent to: one of them (serving.py), and nothing else

Passes are counted until an optimizer is made; a compiled function is a module here (calls.py). Counting starts again when
the unit changes.
"""

from . import events, guard, ledger, shapes, torchapi
from .state import settings, state

_known = {}  # code -> is it an optimizer's step


class _Counted:
    """What was counted last."""

    __slots__ = ("backward", "batches", "whole", "parts")

    def __init__(self):
        self.backward = -1  # the backward pass that an update was counted in
        self.batches = 0
        self.whole = None  # an optimizer that steps by others: which call of its step,
        self.parts = set()  # and who has stepped in it


_counted = _Counted()


# ---- what the sensors tell ----


@guard.guarded
def optimizer_made(optimizer):
    """The program trains."""
    _note_optimizer()


def _note_optimizer():
    if not state.trains and state.unit is not None:  # what ran before were trials: warm-up, anchors, checks of autocast
        _begin_counting(None)
        events.training_began()
    state.trains = True


def _count_updates(optimizer, frame):
    task = torchapi.in_backward()
    if task != -1:
        if task == _counted.backward:
            return
        _counted.backward = task
    _note_optimizer()  # an optimizer that was made before the hook was there
    if _is_part(optimizer, frame):
        return
    state.updates += 1
    if settings.requests:
        return
    events.went_on("optimizer")
    _finished("optimizer", may_stop=True)


update_ended = guard.guarded(_count_updates)


def _is_part(optimizer, frame):
    """True for an update inside the step of another optimizer, which counts for it, or another part of which has."""
    wrapper = getattr(getattr(type(optimizer), "step", None), "__code__", None)
    whole = None
    while frame is not None:
        if whole is not None and frame.f_code is wrapper:
            return True  # torch's own wrapper around that step: its end will be seen
        if whole is None and frame.f_code.co_name == "step" and _is_step(frame.f_code):
            whole = id(frame), state.backwards  # a later call's frame may have the same address
        frame = frame.f_back
    if whole is not None and whole == _counted.whole and id(optimizer) not in _counted.parts:
        _counted.parts.add(id(optimizer))
        return True
    _counted.whole, _counted.parts = whole, {id(optimizer)}
    return False


def _kinds(cls):
    yield cls
    for kind in cls.__subclasses__():
        yield from _kinds(kind)


def _unwrapped(step):
    """What torch wraps, and a change that is tried may wrap once more."""
    while hasattr(step, "__wrapped__"):
        step = step.__wrapped__
    return step


def _is_step(code):
    """True for the code of some optimizer's step."""
    if code not in _known:
        from torch.optim.optimizer import Optimizer

        steps = (vars(cls).get("step") for cls in _kinds(Optimizer))
        codes = {getattr(_unwrapped(step), "__code__", None) for step in steps}
        _known[code] = code in codes
    return _known[code]


def _count_passes(args, kwargs, frame):
    if state.trains:
        return
    signature = shapes.note_inputs(args, kwargs)
    if settings.requests:
        return
    events.went_on("forward")
    if state.unit != "loader":
        _finished("forward", may_stop=shapes.begins_generation(signature, frame) is not False)


call_ended = guard.guarded(_count_passes)


@guard.guarded
def batch_fetched(batch):
    """Something goes on."""
    state.passes += 1


@guard.guarded
def batch_begins(batch):
    """The batch before it was a step, unless the program trains."""
    if state.trains or settings.requests:
        return
    _counted.batches += 1
    if _counted.batches >= 2:
        _finished("loader", may_stop=True)


def request_ended(number):
    """A request was answered."""
    if state.unit != "request":
        _begin_counting("request")
    state.steps = number
    state.complete_passes += 1
    ledger.count_pass()
    events.step_ended(events.Step(number, "request", True))


# ---- counting ----


def _begin_counting(unit):
    state.unit = unit
    state.steps = 0
    events.counting_began()


def _finished(unit, may_stop):
    """A step is over."""
    if state.unit != unit:
        _begin_counting(unit)
    state.steps += 1
    state.complete_passes += 1
    ledger.count_pass()
    if state.cuda_initialized:
        events.step_ended(events.Step(state.steps, unit, may_stop))
