# SPDX-License-Identifier: Apache-2.0
"""Graphs that no backward pass uses.

What autograd keeps is told as a backward pass begins (graph.py), so a graph that none has begun at is told nowhere: outputs that are only
looked at, in training mode and with gradients on; those of a generator while the discriminator goes backward.

A call from outside gives the node that its output ends in a hook. The hook learns when a pass reaches the node, and, since it goes
when the node goes, when the graph is freed. PyTorch's history has what was allocated during the call and given back with the graph
(doc/format/metadata.md, `graph`), so no graph is walked.

A place of the program makes graphs in vain when some were freed unused and none was ever used. An exception frees graphs, too: what was freed
counts once another call has come to its end, and never where it was an out-of-memory's. A graph that is there still is left over when the
program has come round: it is the first of its place, and a call that was made before it, with an update in between, is made again. Not where graphs of
one place pile up, as of losses that are summed for one pass.
"""

import itertools
import threading

from . import frames, guard, metadata
from .state import settings, state

_MOST_OUTPUTS = 32  # of a call
_MOST_FRAMES = 8  # of the program, around a call
_MOST_GRAPHS = 20000  # of one window
_MOST_STACKS = 1000
_MOST_LEFT = 16  # graphs that are looked at as the program comes round
_DEPTH = 4  # of containers, to look for outputs in
_ident = threading.get_ident

_began = {}  # thread -> when its call began, its number, updates before it, is it the first of its place, the frames around it
_waiting = {}  # id -> _Graph: there, and not used
_uses = {}  # (code, line) -> [graphs used, graphs freed without]
_last = {}  # frames around a call -> the number of its last call, and of updates before it
_calls = itertools.count()
_unconfirmed = []  # graphs that were freed unused since the last call
_in_vain = {}  # frames around a call -> was the module in training mode: its graph was freed unused


class _Graph:
    """What one call made."""

    __slots__ = ("began", "ended", "number", "updates", "is_first", "frames", "training", "used", "left_over", "hooks")

    def __init__(self, began, number, updates, is_first, around, ended, training):
        self.began = began  # nanoseconds
        self.ended = ended
        self.frames = around  # ((code, line), ...), innermost first
        self.training = training
        self.number = number  # of the call
        self.updates = updates  # before it
        self.is_first = is_first  # of its place
        self.used = False
        self.left_over = False
        self.hooks = 0  # that are still there


class _Waits:
    """A hook of the node that a call's output ends in. Lives as long as the node."""

    __slots__ = ("graph",)

    def __init__(self, graph):
        self.graph = graph
        graph.hooks += 1

    def __call__(self, gradients):
        if not self.graph.used:
            _used(self.graph)

    def __del__(self):
        self.graph.hooks -= 1
        if self.graph.hooks == 0 and not self.graph.used and _freed is not None:  # None: Python has taken this module apart
            _freed(self.graph)


@guard.guarded
def call_began(module, args, kwargs, frame):
    """A call from outside begins."""
    _began.pop(_ident(), None)
    if module is not None and state.torch.is_grad_enabled():
        number, around = next(_calls), _frames_around(frame)
        is_first = around not in _last and len(_last) < _MOST_STACKS  # beyond, nobody knows
        _came_round(around, number)
        _began[_ident()] = metadata.now(), number, state.updates, is_first, around


@guard.guarded
def call_made(module, result, frame):
    """It has returned this."""
    began = _began.pop(_ident(), None)
    while _unconfirmed:
        _confirm(_unconfirmed.pop())
    nodes = set()
    if began is not None:
        _collect(result, nodes, _DEPTH)
    if nodes:
        graph = _Graph(*began, metadata.now(), module.training)
        _waiting[id(graph)] = graph
        for node in nodes:
            node.register_prehook(_Waits(graph))


def _came_round(around, number):
    """First graphs of their places that were made between this call and the last of its place, behind an update, are left over."""
    before = _last.get(around)
    if before is not None or len(_last) < _MOST_STACKS:
        _last[around] = number, state.updates
    if before is None:
        return
    for graph in tuple(itertools.islice(reversed(_waiting.values()), _MOST_LEFT)):
        if graph.number < before[0]:
            break
        if graph.is_first and graph.updates > before[1]:
            graph.left_over = True


def _collect(value, nodes, depth):
    """The nodes that outputs end in."""
    if isinstance(value, state.torch.Tensor):
        if value.is_cuda and value.grad_fn is not None:
            nodes.add(value.grad_fn)
        return
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        value = vars(value).values() if hasattr(value, "__dataclass_fields__") else ()
    if depth > 0:
        for part in tuple(value):
            if len(nodes) < _MOST_OUTPUTS:
                _collect(part, nodes, depth - 1)


def _frames_around(frame):
    found = []
    frame = frames.place(frame) if frame is not None else None
    while frame is not None and len(found) < _MOST_FRAMES:
        if not found or frames.kind(frame.f_code, frame.f_globals) is frames.USER:
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


@guard.guarded
def _used(graph):
    graph.used = True
    _waiting.pop(id(graph), None)
    for place in graph.frames:
        _uses.setdefault(place, [0, 0])[0] += 1


@guard.guarded
def _freed(graph):
    _waiting.pop(id(graph), None)
    if settings.history and len(metadata.graphs) < _MOST_GRAPHS:
        metadata.graphs.append((graph.began, graph.ended, metadata.now(), graph))
    if state.open_oom is None:
        _unconfirmed.append(graph)


def _confirm(graph):
    for place in graph.frames:
        _uses.setdefault(place, [0, 0])[1] += 1
    if len(_in_vain) < _MOST_STACKS:
        _in_vain[graph.frames] = graph.training


def _is_in_vain(place):
    used, unused = _uses.get(place, (0, 0))
    return unused > 0 and used == 0


@guard.alone
def rows():
    """[(began, ended, freed or 0, file, line, function)] for metadata: graphs that no backward pass has used. The place is empty unless
    it makes graphs in vain."""
    found = []
    known = metadata.graphs + [(graph.began, graph.ended, 0, graph) for graph in tuple(_waiting.values())]
    piles_up = _piles_up()
    for began, ended, freed, graph in sorted(known, key=lambda row: row[0]):
        left_over = freed == 0 and graph.left_over and not piles_up
        in_vain = graph.frames and (left_over or _is_in_vain(graph.frames[0]))
        found.append((began, ended, freed) + (_described(graph.frames) if in_vain else ("", 0, "")))
    return found


def _piles_up():
    there = [graph.frames[:1] for graph in tuple(_waiting.values())]
    return len(set(there)) < len(there)


def _described(around):
    code, line = around[0]
    file, line = frames.site_of(code, line)
    return file, line, code.co_name


def places():
    """[(file, line, training)]: the innermost statements that make graphs in vain, of each call that did, or has one left over."""
    found = {}
    left_over = [] if _piles_up() else [graph for graph in tuple(_waiting.values()) if graph.left_over]
    for graph in left_over:
        if graph.frames and not any(_uses.get(graph.frames[0], ())):
            found[frames.site_of(*graph.frames[0])] = graph.training
    for around, training in tuple(_in_vain.items()):
        place = next(filter(_is_in_vain, around), None)
        if place is not None:
            found[frames.site_of(*place)] = training
    return [(file, line, training) for (file, line), training in found.items()]
