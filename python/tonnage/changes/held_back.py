# SPDX-License-Identifier: Apache-2.0
"""What a program moves with each batch beside its gradients, while a batch comes in pieces (accumulate.py).

Schedules of the program's own: an object that holds an optimizer and is neither torch's nor the one whose method runs the loop
(`ScheduledOptim`, `WarmupCosine`). Each piece of a batch begins with the plain numbers that it, and the optimizer's groups, had at
the first one, so that a batch moves them once, as before.

An average of the model that a loop over parameters makes moves with the last piece only (`moves`).
"""

import ast
import gc
import sys
import weakref

from . import arguments, code, hooks, moving_state, table

_FRAMES = 30
_BATCH_NORM = "The model's batch normalisation sees the smaller batches, which is another training."
_MOVING = "%s moves buffers of its own in each forward pass: it does so for each of the smaller batches, which is another training."
COUNTED = "The number that the learning-rate schedule is stepped with (%s) counts micro-batches then: divide it by %d."
_IN_PLACE = ("mul_", "lerp_", "copy_", "add_")
_BLENDS = ("lerp_", "mul_")
_OF_A_MODEL = ("parameters", "named_parameters", "buffers", "state_dict")
_GUARD = 'if __import__("sys").modules["_tonnage_changes.held_back"].moves():'
_averages = {}  # path -> loops over two models' parameters
_last = [lambda: True]  # whether the present piece is one with which everything moves


def moves():
    """Asked by the program before it averages."""
    return _last[0]()


def watch(change, source, is_last):
    """The loops of one file that average a model wait for the last piece."""
    _last[0] = is_last
    for node in source.all(ast.For) if not source.before_brackets.isdisjoint(_BLENDS + _OF_A_MODEL) else ():
        if _averages_models(node) or _blends_two_tables(source, node):
            _averages.setdefault(source.path, []).append(node)
            change.trial_edits(source).wrap([node], _GUARD)


def averages():
    """{path: loops} that were found."""
    return _averages


def _averages_models(loop):
    """`for a, b in zip(one.parameters(), other.parameters()): a.mul_(m).add_(...)`, or over one model's parameters with the
    average in a table: `for name, p in model.named_parameters(): shadow[name] = m * shadow[name] + (1 - m) * p`."""
    pairs = [call for call in ast.walk(loop.iter) if isinstance(call, ast.Call) and code.last(call.func) in _OF_A_MODEL]
    if len(pairs) == 1:
        return _blends_into_a_table(loop)
    if len(pairs) < 2 or "zip" not in {code.last(call.func) for call in ast.walk(loop.iter) if isinstance(call, ast.Call)}:
        return False
    calls = [node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(code.last(call.func) in _IN_PLACE or "lerp" in ast.dump(call.func) for call in calls)


def _blends_into_a_table(loop):
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in nodes):
        return False  # an optimizer of the program's own, or clipping
    sums = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)]
    products = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) for node in sums for each in (node.left, node.right))
    table = any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in nodes)
    in_place = [node.func.value for node in nodes if isinstance(node, ast.Call) and code.last(node.func) in _BLENDS]
    return products and table or any(isinstance(each, ast.Subscript) for node in in_place for each in ast.walk(node))


def _blends_two_tables(source, loop):
    """`for key in one: one[key].mul_(m).add_(other[key], ...)`, where both are made of a model's parameters in the function around the loop."""
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    if not any(isinstance(node, ast.Call) and code.last(node.func) in _BLENDS for node in nodes):
        return False
    scope = source.scope(loop)
    made = {name for node in ast.walk(scope) if isinstance(node, ast.Assign) and _is_of_a_model(node.value) for name in code.stored(node)}
    looked_up = {node.value.id for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)}
    return len(made & looked_up) > 1


def _is_of_a_model(value):
    return any(isinstance(node, ast.Call) and code.last(node.func) in _OF_A_MODEL for node in ast.walk(value))


class Schedules:
    """The numbers of the program's own schedules."""

    def __init__(self):
        self.optimizers = weakref.WeakSet()
        self.owners = None  # (how many optimizers there were, the objects)
        self.kept = []  # (variables, the numbers of them at the first piece)
        self.given = weakref.WeakKeyDictionary()  # a schedule of torch's -> (batch, the number that step() was given first in it)

    def made(self, optimizer, frame):
        self.optimizers.add(optimizer)

    def piece(self, first, frame):
        """A piece is about to be used, the first of its batch or another."""
        if first:
            self.kept = [(numbers, _numbers(numbers)) for numbers in self._tables(frame)]
            return
        for variables, numbers in self.kept:
            variables.update(numbers)

    def counts_pieces(self, called, batch):
        """A schedule's step() is called with these arguments: true where its number is another one for another piece of the same batch."""
        if len(called) < 2 or type(called[1]) is not int or not hasattr(called[0], "last_epoch"):
            return False
        if self.given.get(called[0], (None,))[0] != batch:
            self.given[called[0]] = batch, called[1]
        return self.given[called[0]][1] != called[1]

    def _tables(self, frame):
        if self.owners is None or self.owners[0] != len(self.optimizers):
            self.owners = len(self.optimizers), [weakref.ref(each) for each in _owners_of(list(self.optimizers), frame)]
        owners = [reference() for reference in self.owners[1]]
        groups = [group for optimizer in self.optimizers for group in getattr(optimizer, "param_groups", ())] if owners else []
        return [vars(owner) for owner in owners if owner is not None] + groups


def _numbers(variables):
    return {name: value for name, value in variables.items() if type(value) in (int, float)}


def _owners_of(optimizers, frame):
    """Objects of the program's own classes that hold an optimizer, but those whose methods are running."""
    running = set()
    for _ in range(_FRAMES):
        if frame is None:
            break
        running.add(id(hooks.value_of(frame, "self")))
        frame = frame.f_back
    found = {}
    for optimizer in optimizers:
        for holder in gc.get_referrers(optimizer):
            objects = gc.get_referrers(holder) if type(holder) is dict else [holder]
            for each in objects:
                if id(each) not in running and _is_own(each) and any(v is optimizer for v in vars(each).values()):
                    found[id(each)] = each
    return [each for each in found.values() if _takes_references(each)]


def _is_own(value):
    from _tonnage_guest import frames

    if isinstance(value, type) or not hasattr(value, "__dict__") or not isinstance(vars(value), dict):
        return False
    path = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    return path is not None and frames.is_users(path) and not hasattr(value, "param_groups")


def _takes_references(value):
    try:
        weakref.ref(value)
        return True
    except TypeError:
        return False


def watch_what_sees_pieces(change):
    """Batch normalisation in training mode sees smaller batches, and buffers that each forward pass moves are moved more often. Frozen
    layers, in eval(), see samples. Of layers that no model was called with, how they were made is all that is known."""
    from _tonnage_guest import imports

    counts = weakref.WeakKeyDictionary()  # a model -> how often it was called
    made, known = weakref.WeakSet(), weakref.WeakSet()  # layers; those of models that were called

    def moves(parts):
        change.weaken(table.DIFFERENT)
        arguments.say(change, _MOVING % type(parts[0]).__name__)

    watched = moving_state.Watch(change, moves)

    def called(root, frame):
        watched.called(root)
        counts[root] = count = counts.get(root, 0) + 1
        if count & (count - 1):
            return  # a layer may be thawed later: it is looked at again, ever more seldom
        norms = [part for part in root.modules() if isinstance(part, sys.modules["torch"].nn.modules.batchnorm._BatchNorm)]
        known.update(norms)
        if any(each.training for each in norms) or any(each.training and each not in known for each in made):
            change.weaken(table.DIFFERENT)
            arguments.say(change, _BATCH_NORM)
        part = moving_state.of(root) if root.training and count == 1 else None
        if part is not None:
            moves([part])

    def watch(module):
        cls = module._NormBase
        original = cls.__init__

        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            if isinstance(self, module._BatchNorm):
                made.add(self)

        cls.__init__ = __init__

    imports.watch("torch.nn.modules.batchnorm", change.guarded(watch))
    hooks.before_forward(change.guarded(called))
