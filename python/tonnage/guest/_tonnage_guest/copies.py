# SPDX-License-Identifier: Apache-2.0
"""Which parameters are those of a second copy of a model: an average of its weights, a target or reference model.

Told by owner and shapes, never by a name: a module none of whose parameters is trained, and another one, most of what is
trained, whose parameters have the same shapes, each as often. Layers beside each other in a list are no copies of each other.

Trained is what requires gradients and, once there is an optimizer, what one was given.
"""

import weakref

from . import guard
from .state import state

_FEWEST = 4  # parameters: fewer of the same shapes are by chance
_SHARE = 4  # of what is trained, the other one has at least 1/4
_DEEPEST = 64

_MOST_PARENTS = 4  # of a module, the last ones

_parents = {}  # id of a module -> a weak reference to it, and those to the modules that it was put into, the last one first
_optimizers = {}  # id -> weak reference
_called = {}  # the same, of modules that were called from outside


@guard.alone
def note_optimizer(optimizer):
    """An optimizer is being made."""
    _optimizers[id(optimizer)] = weakref.ref(optimizer)


@guard.alone
def note_call(module):
    """A module is called from outside."""
    if not _is_in(_called, module):
        _called[id(module)] = weakref.ref(module)


@guard.alone
def note_child(module, child):
    """A module becomes a part of another one."""
    if child is None:
        return
    known, parents = _parents.get(id(child), (None, ()))
    others = parents if known is not None and known() is child else ()
    kept = [one for one in others if one() is not None and one() is not module]
    _parents[id(child)] = (known if others else weakref.ref(child), (weakref.ref(module), *kept[:_MOST_PARENTS - 1]))


class _Sum:
    """The parameters of a module and of all within it."""

    __slots__ = ("module", "shapes", "count", "bytes", "trained")

    def __init__(self, module):
        self.module, self.shapes, self.count, self.bytes, self.trained = module, 0, 0, 0, 0


def find(modules):
    """(ids of the parameters of copies, whether one of the copies has been called) among the parameters of `modules`, which own
    them."""
    owners = list(modules)
    _look_for_parents(owners)
    sums, whole = _add_up(owners)
    copies = [one for one in sums.values() if _is_copy(one, sums, whole)]
    if not copies:
        return frozenset(), False
    roots = {id(one.module) for one in copies}
    ids = {id(parameter) for owner in owners if any(id(module) in roots for module in _upwards(owner))
           for parameter in owner._parameters.values() if parameter is not None}
    return ids, any(_is_in(_called, one.module) for one in copies)


def _look_for_parents(owners):
    """A container may take a module without a word (ModuleList.insert). It is known by what it is in, or by its other parts."""
    roots = {id(outermost(owner)) for owner in owners}
    if len(roots) < 2:
        return
    known = (reference() for child, parents in tuple(_parents.values()) for reference in (child, *parents))
    for module in {id(module): module for module in known if module is not None}.values():
        for part in tuple(module._modules.values()):
            if id(part) in roots:
                note_child(module, part)


def names(owners):
    """{id of a module that owns parameters: "module " and the class of the outermost module that it is in}; {} where that is the same
    for all. Containers and layers of torch itself have no name that tells anything."""
    found = {id(owner): _name(owner) for owner in owners if _is_on_a_card(owner)}
    return found if len(set(found.values())) > 1 else {}


def _is_on_a_card(owner):
    return any(parameter is not None and parameter.is_cuda for parameter in owner._parameters.values())


def _name(owner):
    """Of what wraps a model (DistributedDataParallel, a compiled one), the model in it is meant."""
    for module in reversed(list(_upwards(owner))):
        cls = type(module)
        if cls.__module__.startswith("torch.nn.modules."):
            return ""
        if not cls.__module__.startswith("torch."):
            return "module " + cls.__name__
    return ""


def _add_up(owners):
    alive = [optimizer for optimizer in (reference() for reference in _optimizers.values()) if optimizer is not None]
    given = {id(parameter) for optimizer in alive for group in getattr(optimizer, "param_groups", ())
             for parameter in group["params"]}
    sums, whole = {}, 0
    for owner in owners:
        way = list(_upwards(owner))
        for parameter in owner._parameters.values():
            if parameter is None or not parameter.is_cuda:
                continue
            trained = parameter.requires_grad and (not given or id(parameter) in given)
            size = parameter.nbytes
            whole += size * trained
            for module in way:
                one = sums.get(id(module))
                if one is None:
                    one = sums[id(module)] = _Sum(module)
                one.shapes += hash(tuple(parameter.shape))
                one.count += 1
                one.bytes += size
                one.trained += size * trained
    return sums, whole


def _is_copy(one, sums, whole):
    parent = _parent(one.module)
    if one.trained or one.count < _FEWEST or (parent is not None and not sums[id(parent)].trained):
        return False  # also a part of a larger copy
    return any(other.trained * _SHARE >= whole > 0 and (other.shapes, other.count) == (one.shapes, one.count)
               and not _in_one_list(one.module, other.module) for other in sums.values())


def _in_one_list(one, other):
    parent = _parent(one)
    containers = state.torch.nn.Sequential, state.torch.nn.ModuleList, state.torch.nn.ModuleDict
    return parent is not None and parent is _parent(other) and isinstance(parent, containers)


def outermost(module):
    """The module that this one is in, and that is in no other."""
    for module in _upwards(module):
        pass
    return module


def _is_in(table, thing):
    reference = table.get(id(thing))
    return reference is not None and reference() is thing


def _upwards(module):
    """The module, and those that it is in, from inside out."""
    for _ in range(_DEEPEST):
        yield module
        module = _parent(module)
        if module is None:
            return


def _parent(module):
    """The module that this one is in, the last of several; None for the outermost."""
    child, parents = _parents.get(id(module), (None, ()))
    if child is None or child() is not module:
        return None
    for parent in parents:
        owner = parent()
        if owner is not None and any(part is module for part in owner._modules.values()):
            return owner
    return None
