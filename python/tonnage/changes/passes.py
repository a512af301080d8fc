# SPDX-License-Identifier: Apache-2.0
"""How many backward passes the gradients of each update are made of, and how many there were since the update before.

A change that keeps the results keeps that, too: zeroing behind an update lets gradients live on that another optimizer's pass gave the
same parameters (a discriminator's, of its generator's pass), and updating during backward updates in each pass that reaches a parameter. Looked at is one
parameter of each optimizer, the first. Nothing of the program is changed: a tensor's hook counts and returns nothing.
"""

import itertools
import weakref

from _tonnage_guest.state import state

_MOST = 16  # updates that are told
_MOST_PARAMETERS = 4

_made = []  # weak references to optimizers whose parameters were not looked at
_owned = set()  # ids of parameters that an optimizer had, which live: an optimizer's
_followed = {}  # id of a parameter -> _Gradient
_rows = weakref.WeakKeyDictionary()  # optimizer -> the _Gradient of its parameter, or None
_passes = itertools.count(1)


class _Now:
    """Where the program is."""

    __slots__ = ("number",)

    def __init__(self):
        self.number = 0  # of the last pass


_now = _Now()


class _Gradient:
    """What one parameter's gradient is made of."""

    __slots__ = ("count", "version", "updated", "updates", "pass_before")

    def __init__(self):
        self.count = 0
        self.version = None  # of its memory, behind the last pass
        self.updated = False  # since the last pass
        self.updates = []  # [passes in its gradient, passes since the update before] of the first
        self.pass_before = 0  # the number of the last pass at its last update

    def comes(self, parameter):
        """A pass is about to add to it."""
        gradient = parameter.grad
        zeroed = gradient is None or (self.updated and gradient._version != self.version)
        self.count = 1 if zeroed else self.count + 1
        self.updated = False

    def is_there(self, parameter):
        """It was added."""
        gradient = parameter.grad
        self.version = gradient._version if gradient is not None else None


def made(optimizer, frame):
    """An optimizer is made; it has no parameters yet."""
    _made.append(weakref.ref(optimizer))


def begins():
    """A backward pass begins: what was made until now has its parameters."""
    _now.number = next(_passes)
    while _made:
        optimizer = _made.pop(0)()
        if optimizer is not None:
            _follow([parameter for group in optimizer.param_groups for parameter in group["params"]])


def _follow(parameters):
    first = next((parameter for parameter in parameters if parameter.requires_grad and parameter.is_leaf), None)
    if first is not None and id(first) not in _owned and len(_followed) < _MOST_PARAMETERS:
        gradient = _followed[id(first)] = _Gradient()
        known = weakref.ref(first)
        first.register_hook(lambda _: _tell(gradient.comes, known))
        first.register_post_accumulate_grad_hook(lambda _: _tell(gradient.is_there, known))
    _owned.update(map(id, parameters))


def _tell(method, known):
    try:
        parameter = known()
        if parameter is not None:
            method(parameter)
    except Exception:
        pass  # a gradient without a version: what is told of it is not compared


def updated(optimizer):
    """It has made an update."""
    if optimizer not in _rows:
        ids = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        _rows[optimizer] = next((_followed[number] for number in ids if number in _followed), None)
    gradient = _rows[optimizer]
    if gradient is not None:
        gradient.updated = True
        ends_early = state.fast_forward is not None and gradient.updates  # the epoch: trainers update at its end
        if len(gradient.updates) < _MOST and not ends_early:
            gradient.updates.append([gradient.count, _now.number - gradient.pass_before])
        gradient.pass_before = _now.number


def seen():
    """Of each parameter that is followed, what its first updates were made of."""
    return [gradient.updates for gradient in _followed.values()]
