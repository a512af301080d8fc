# SPDX-License-Identifier: Apache-2.0
"""Several trainings in one process: when a new one begins, and what those before it have left on the card (doc/design/0038-trainings.md).

A new training begins with the first update of an optimizer that was made after the optimizers of the training so far had stepped, and none
of whose parameters they were given. Optimizers that go on together afterwards (a second network that is trained from some step on) are one
training after all. What earlier ones left is looked for (earlier.py) after the first update of a new one, and at an out-of-memory.

A training whose model is called again later is wanted: a teacher, a part that stays frozen, an ensemble that is evaluated. All by weak
references: nothing lives longer for us.
"""

import time
import weakref

from . import earlier, events, guard, holds, references
from .state import state

_LOOKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # trainings at whose first update is looked
_MOST_TRAININGS = 1000
_MOST_SECONDS = 20.0  # of looking
_clock = time.monotonic
_MOST_CALLED = 4096
_SHARE = 2  # of the parameters of a training, new ones have half: another is being set up


class Training:
    """Optimizers that step together, over the same parameters."""

    __slots__ = ("number", "optimizers", "parameters", "wanted", "there")

    def __init__(self, number):
        self.number = number
        self.optimizers = {}  # id -> weak reference
        self.parameters = {}  # id -> weak reference
        self.wanted = False  # its model was called again in a later one
        self.there = {}  # parameters of any module that were there at the first update


class _Known:
    """What is known of the trainings so far."""

    __slots__ = ("trainings", "made", "called", "looked", "spent", "set_up")

    def __init__(self):
        self.trainings = []
        self.made = {}  # id of an optimizer that was made -> (weak reference, its training's number, as it was made)
        self.called = {}  # id of a module that was called -> (weak reference, the training then)
        self.set_up = 0  # 1: another was being set up as memory ran out
        self.spent = 0.0  # seconds of looking
        self.looked = False  # the training that began was looked at


_known = _Known()


def count():
    """How many there were; one that was being set up as memory ran out counts, too."""
    return len(_known.trainings) + _known.set_up


def has_trained(parameter):
    """True where an optimizer that was given it has made an update."""
    return _of(parameter) is not None


# ---- what the sensors tell ----


@guard.guarded
def optimizer_made(optimizer):
    """Its class's constructor runs."""
    if len(_known.made) >= _MOST_TRAININGS * 4:
        return
    _known.made[id(optimizer)] = weakref.ref(optimizer), len(_known.trainings)


@guard.guarded
def update_began(optimizer, frame):
    """An optimizer is about to make an update."""
    now = _known.trainings[-1] if _known.trainings else None
    if now is not None and _is_in(now.optimizers, optimizer):
        return
    given = {id(parameter): references.to(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if now is None or _is_new(optimizer, given):
        if len(_known.trainings) >= _MOST_TRAININGS:
            return
        now = Training(len(_known.trainings) + 1)
        _known.trainings.append(now)
        _known.looked = False
    else:
        _join(optimizer)
        now = _known.trainings[-1]
    now.optimizers[id(optimizer)] = weakref.ref(optimizer)
    now.parameters.update(given)


@guard.guarded
def update_ended(optimizer, frame):
    """It has made it."""
    if _known.looked or not _known.trainings:
        return
    _known.looked = True
    now = _known.trainings[-1]
    now.there = {id(parameter): references.to(parameter) for parameter in _parameters()}
    if now.number in _LOOKS:
        _look(now, frame)


@guard.guarded
def call_began(module, args, kwargs, frame):
    """A module is called from outside."""
    now = len(_known.trainings)
    if module is None or now < 2:
        return
    reference, seen = _known.called.get(id(module), (None, 0))
    if seen == now and reference() is module:
        return
    if len(_known.called) >= _MOST_CALLED:
        _known.called.clear()
    _known.called[id(module)] = weakref.ref(module), now
    for number in {_of(parameter) for parameter in module.parameters()} - {None, now}:
        _known.trainings[number - 1].wanted = True


def _of(parameter):
    """The number of the training whose optimizers were given a parameter, the last one; or None."""
    for training in reversed(_known.trainings):
        if _is_in(training.parameters, parameter):
            return training.number
    return None


@guard.alone
def out_of_memory(frame):
    """What those before hold, beside what asked in vain."""
    if not _known.trainings:
        return
    now = _known.trainings[-1]
    if _is_set_up(now):
        _known.set_up = 1
        _look(None, frame)
    elif now.number > 1:
        _look(now, frame)


# ---- which training ----


def _is_in(table, thing):
    reference = table.get(id(thing))
    return reference is not None and reference() is thing


def _is_new(optimizer, given):
    now = _known.trainings[-1]
    reference, made_in = _known.made.get(id(optimizer), (None, 0))
    if reference is None or reference() is not optimizer or made_in < now.number:
        return False  # it was there before the training began
    for training in _known.trainings:
        if _is_in(training.optimizers, optimizer):
            return False
    return not any(_is_in(now.parameters, parameter()) for parameter in given.values())


def _join(optimizer):
    """An optimizer of an earlier training goes on: it and all since are one."""
    for index, training in enumerate(_known.trainings[:-1]):
        if _is_in(training.optimizers, optimizer):
            for later in _known.trainings[index + 1:]:
                for name in ("optimizers", "parameters", "there"):
                    getattr(training, name).update(getattr(later, name))
            del _known.trainings[index + 1:]
            for key in [key for key, row in state.left_by_trainings.items() if row["training"] > training.number]:
                del state.left_by_trainings[key]
            return


def _is_set_up(now):
    """True where a model that is not of this training, and as large as half of it, was made since it began."""
    old = sum(size for size in map(_size, now.parameters.values()))
    new = sum(parameter.nbytes for parameter in _parameters()
              if not _is_in(now.there, parameter) and not _is_in(now.parameters, parameter)) if now.there else 0
    return bool(old) and new * _SHARE >= old


def _size(reference):
    thing = reference()
    return thing.nbytes if thing is not None else 0


def _parameters():
    return [parameter for module in holds.modules() for parameter in tuple(module._parameters.values()) if parameter is not None]


# ---- what they left ----


def _look(now, frame):
    """`now`: the training that goes on; None where the next is being set up."""
    over = [(training.number, list(training.parameters.values()), list(training.optimizers.values()))
            for training in _known.trainings if training is not now and not training.wanted and _is_there(training)]
    number = now.number if now is not None else len(_known.trainings) + 1
    if over and _known.spent < _MOST_SECONDS:
        began = _clock()
        rows = earlier.look(over, frame) or ()
        _known.spent += _clock() - began
        events.waited(_clock() - began)
        for row in rows:
            row["training"] = number
            key = row["kind"], row["name"]
            if key not in state.left_by_trainings or row["bytes"] >= state.left_by_trainings[key]["bytes"]:
                state.left_by_trainings[key] = row


def _is_there(training):
    return any(reference() is not None for table in (training.parameters, training.optimizers) for reference in table.values())


def document():
    """For guest/<pid>.json."""
    wanted = {training.number for training in _known.trainings if training.wanted}
    rows = []
    for row in state.left_by_trainings.values():
        of = [number for number in row["of"] if number not in wanted]
        if of and (row["optimizers"] or len(of) > 1 or row["kind"] in ("exception", "garbage")):
            rows.append({**row, "of": len(of)})
    return {"count": len(_known.trainings), "left": rows}
