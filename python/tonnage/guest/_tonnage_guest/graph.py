# SPDX-License-Identifier: Apache-2.0
"""Autograd's graph as a backward pass begins: what is kept for it, and which node works when.

torch asks its own logger, at the beginning of each pass, whether hooks should log the whole graph, and calls what sets
them. Both stand in torch.autograd.graph under names that we replace, so that we are called with the roots and at the
end of the pass, with no frame of ours under the engine's call. Where a release has no such names, nothing is marked and the
analysis infers.

Nodes get a hook that notes when they begin. Accumulating nodes get none: they outlive their graph. Saved tensors are read
without unpacking what somebody's hooks have packed (checkpointing would compute it again).
"""

import gc
import logging
import time

from . import facts, frames, guard, history, holds, imports, marks, phases, torchapi
from .state import state

_SECONDS = 2.0  # of walking in any case; then passes are walked where more is allocated than ever at a beginning, and
_SHARE = 0.15  # while walking takes no more than this part of the time
_MAX_NODES = 200000
_VIEWS = ("View", "UnsafeView", "Transpose", "T", "Permute", "Expand", "Slice", "Select", "Split", "SplitWithSizes",
          "Unsqueeze", "Squeeze", "Reshape", "ReshapeAlias", "Alias", "AsStrided", "Unbind", "Chunk", "Narrow",
          "Unfold", "SwapAxes", "MovedDim", "Detach", "Diagonal")
_LABELS = {"SoftmaxBackward0": "softmax", "LogSoftmaxBackward0": "log_softmax"}  # results worth naming
_OWN_RESULTS = ("_raw_saved_result", "_raw_saved_output", "_raw_saved_out")

_clock = time.monotonic

_walked = 0
_spent = 0.0  # seconds
_highest = 0  # bytes allocated at the beginning of a walked pass
_next_node = 0
_kinds = {}  # class of a node -> (its name, is it a view, names of its saved tensors)
_packed = False  # the program packed saved tensors by hooks since the last pass


def install():
    """Called once torch is imported."""
    imports.watch("torch.autograd.graph", guard.guarded(_watch))
    core = torchapi.core()
    push = getattr(core._autograd, "_push_saved_tensors_default_hooks", None)
    if push is not None:
        core._autograd._push_saved_tensors_default_hooks = _noting(push)


def _noting(push):
    def _push_saved_tensors_default_hooks(pack, unpack):
        global _packed
        _packed = True
        if getattr(pack, "__module__", None) == "torch.utils.checkpoint":
            facts.note_checkpoint()
        return push(pack, unpack)

    return _push_saved_tensors_default_hooks


class _Logger:
    """torch's logger, which is asked for its level at the beginning of each backward pass."""

    def __init__(self, logger):
        self._logger = logger

    def getEffectiveLevel(self):
        return logging.DEBUG if state.armed else self._logger.getEffectiveLevel()

    def __getattr__(self, name):
        return getattr(self._logger, name)


def _watch(module):
    logger, register = getattr(module, "log", None), getattr(module, "_register_logging_hooks_on_whole_graph", None)
    if register is None or not hasattr(logger, "getEffectiveLevel"):
        return

    def _register_logging_hooks_on_whole_graph(outputs):
        really = logger.getEffectiveLevel() <= logging.DEBUG
        undo = register(outputs) if really else None
        _begins(outputs)

        def unregister():
            _ended()
            if undo is not None:
                undo()

        return unregister

    module.log = _Logger(logger)
    module._register_logging_hooks_on_whole_graph = _register_logging_hooks_on_whole_graph


@guard.guarded
def _begins(outputs):
    state.in_backward += 1
    state.backwards += 1
    if not state.cuda_initialized:
        return
    if state.in_backward == 1:
        phases.enter("backward", frames.caller(1))
    allocated = torchapi.allocated()
    global _walked, _highest, _spent
    if not history.wanted():
        return
    began = _clock()
    if allocated <= _highest and _spent > max(_SECONDS, _SHARE * (began - state.started)):
        marks.passes.append((marks.now(), _walked, ()))
        return
    _walked += 1
    _highest = max(_highest, allocated)
    mark_pass(roots_of(outputs), hooks=True)
    _spent += _clock() - began


@guard.guarded
def _ended():
    state.in_backward = max(0, state.in_backward - 1)
    if state.in_backward == 0 and state.cuda_initialized:
        phases.enter("other")


def roots_of(outputs):
    """The nodes of tensors, or of gradient edges."""
    found = []
    for output in outputs:
        node = getattr(output, "grad_fn", None) or getattr(output, "node", None)
        if node is not None:
            found.append(node)
    return found


@guard.uncollected
def mark_pass(roots, hooks):
    """Walks the graph and marks its nodes and what it keeps."""
    global _next_node, _packed
    nodes = walk(roots)
    kept, evidence = [], {}
    unpackable = torchapi.reads_saved_tensors_without_unpacking() or not _packed
    numbers = {node: number for number, node in enumerate(nodes, _next_node)}
    _next_node += len(nodes)
    if unpackable:
        for node in nodes:
            if _kind(node)[2]:
                _read_saved(node, kept, evidence)
    rows = []
    for node, number in numbers.items():
        name, view, _ = _kind(node)
        rows.append((number, _sequence(node), _bytes(node), evidence.get(node, 0), view, name))
    time = marks.now()
    marks.looks.append((time, kept))
    marks.passes.append((time, _walked, rows))
    _packed = False
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
            facts.note_checkpoint()
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

    def __call__(self, gradients, append=marks.runs.append, clock=marks.now):
        append((clock(), self))


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
