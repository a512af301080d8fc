# SPDX-License-Identifier: Apache-2.0
"""Autograd's graph as a backward pass begins: what is kept for it, and which node works when. Where a release of torch does
not tell of passes (backward.py), nothing is marked and the analysis infers.

Nodes get a hook that notes when they begin. Accumulating nodes get none: they outlive their graph. Saved tensors are read
without unpacking what somebody's hooks have packed (checkpointing would compute it again).
"""

import gc
import time

from . import events, guard, holds, metadata, recomputed, torchapi
from .state import settings, state

_SECONDS = 2.0  # of walking in any case; then passes are walked where more is allocated than ever at a beginning, and
_SHARE = 0.15  # while walking takes no more than this part of the time
_MAX_NODES = 200000
_VIEWS = ("View", "UnsafeView", "Transpose", "T", "Permute", "Expand", "Slice", "Select", "Split", "SplitWithSizes",
          "Unsqueeze", "Squeeze", "Reshape", "ReshapeAlias", "Alias", "AsStrided", "Unbind", "Chunk", "Narrow",
          "Unfold", "SwapAxes", "MovedDim", "Detach", "Diagonal")
_LABELS = {"SoftmaxBackward0": "softmax", "LogSoftmaxBackward0": "log_softmax"}  # results worth naming
_OWN_RESULTS = ("_raw_saved_result", "_raw_saved_output", "_raw_saved_out")

_clock = time.monotonic

_kinds = {}  # class of a node -> (its name, is it a view, names of its saved tensors)


class _Passes:
    """The backward passes so far."""

    __slots__ = ("walked", "spent", "highest", "next_node", "packed")

    def __init__(self):
        self.walked = 0
        self.spent = 0.0  # seconds
        self.highest = 0  # bytes allocated at the beginning of a walked pass
        self.next_node = 0
        self.packed = False  # the program packed saved tensors by hooks since the last pass


_passes = _Passes()


@guard.guarded
def look(outputs, creates):
    """A backward pass begins at these; `creates` a graph of its own."""
    if not settings.history:
        return
    allocated, began = torchapi.allocated(), _clock()
    if allocated <= _passes.highest and _passes.spent > max(_SECONDS, _SHARE * (began - state.started)):
        metadata.passes.append((metadata.now(), _passes.walked, creates, ()))
        return
    _passes.walked += 1
    _passes.highest = max(_passes.highest, allocated)
    mark_pass(roots_of(outputs), hooks=True, creates=creates)
    _passes.spent += _clock() - began


@guard.guarded
def note_packing():
    """The program's hooks pack saved tensors from now on, until the next pass."""
    _passes.packed = True


def roots_of(outputs):
    """The nodes of tensors, or of gradient edges."""
    found = []
    for output in outputs:
        node = getattr(output, "grad_fn", None) or getattr(output, "node", None)
        if node is not None:
            found.append(node)
    return found


@guard.uncollected
def mark_pass(roots, hooks, creates=False):
    """Walks the graph and marks its nodes and what it keeps."""
    nodes = walk(roots)
    kept, evidence = [], {}
    unpackable = torchapi.reads_saved_tensors_without_unpacking() or not _passes.packed
    numbers = {node: number for number, node in enumerate(nodes, _passes.next_node)}
    _passes.next_node += len(nodes)
    if unpackable:
        for node in nodes:
            if _kind(node)[2]:
                _read_saved(node, kept, evidence)
    kept.extend(recomputed.rows())
    rows = []
    for node, number in numbers.items():
        name, view, _ = _kind(node)
        rows.append((number, _sequence(node), _bytes(node), evidence.get(node, 0), view, name))
    time = metadata.now()
    metadata.looks.append((time, kept))
    metadata.passes.append((time, _passes.walked, creates, rows))
    _passes.packed = False
    if hooks:
        _hook(nodes, numbers)


def walk(roots):
    """All nodes above these."""
    seen = set(roots)
    stack = list(seen)
    nodes = []
    while stack and len(nodes) < _MAX_NODES:
        node = stack.pop()
        nodes.append(node)
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                stack.append(before)
    return nodes


def _kind(node):
    cls = type(node)
    found = _kinds.get(cls)
    if found is None:
        name = node.name().rpartition("::")[2]
        stem = name[:name.find("Backward")] if "Backward" in name else name
        if "checkpoint" in name.lower():
            events.checkpoint_met()
        saved = [attribute for attribute in dir(cls) if attribute.startswith("_raw_saved_")]
        found = _kinds[cls] = (name, int(stem in _VIEWS), saved)
    return found


def _sequence(node):
    number = node._sequence_nr()
    return number if number < 1 << 62 else -1


def _bytes(node):
    for output in getattr(node, "_input_metadata", None) or ():
        size = output.dtype.itemsize
        for length in output.shape:
            size *= int(length)
        return size
    return 0


def _read_saved(node, kept, evidence):
    for name in _kind(node)[2]:
        try:
            saved = getattr(node, name)
            values = saved if isinstance(saved, (tuple, list)) else (saved,)
            for index, value in enumerate(values):
                tensor = torchapi.saved_tensor(node, name, value, index, isinstance(saved, (tuple, list)))
                if tensor is not None:
                    _keep(node, tensor, name.startswith(_OWN_RESULTS), kept, evidence)
        except (RuntimeError, AttributeError, NotImplementedError):
            continue  # released, changed in place, or without memory


def _keep(node, tensor, own, kept, evidence):
    if not tensor.is_cuda:
        return
    maker = node if own else tensor.grad_fn
    leaf = maker is None and not tensor.requires_grad
    label = "" if maker is None else _LABELS.get(_kind(maker)[0], "")
    rows = holds.rows_of("inputs" if leaf else "activations", tensor, label, whole=True)
    kept.extend(rows)
    if rows and maker is not None and maker not in evidence:
        evidence[maker] = rows[0][1]


def _hook(nodes, numbers):
    for node in nodes:
        if _kind(node)[0] != "AccumulateGrad":
            node.register_prehook(_Begins(numbers[node]))


class _Begins(int):
    """The hook of a node of this number: an object that the garbage collector does not know, since there are thousands."""

    __slots__ = ()

    def __call__(self, gradients, append=metadata.runs.append, clock=metadata.now):
        append((clock(), self))


@guard.guarded
def mark_unfinished_forward():
    """At an out-of-memory in forward: what autograd keeps already, found from every tensor that Python knows. Costs some
    tens of milliseconds."""
    kinds = _tensor_types(state.torch.Tensor)
    roots = roots_of(thing for thing in gc.get_objects() if type(thing) in kinds)
    mark_pass(roots, hooks=False)


def _tensor_types(cls):
    found = {cls}
    stack = [cls]
    while stack:
        for kind in stack.pop().__subclasses__():
            if kind not in found:
                found.add(kind)
                stack.append(kind)
    return found
