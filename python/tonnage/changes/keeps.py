# SPDX-License-Identifier: Apache-2.0
"""What a program keeps, as the survey sees it: what `detach`, `outputs_to_host`, `release_outputs` and `chunked_loss` could act on, and how
much at most.

Probes stand where these changes would act. They look at the values and change nothing.
"""

import ast

from _tonnage_guest.state import state

from . import chunked_loss, kept, release_outputs

_OUTPUTS = '__import__("sys").modules["_tonnage_changes.keeps"].outputs(%d, %s)'
_LOGITS = '__import__("sys").modules["_tonnage_changes.keeps"].logits(%d, %s)'
_MOST_DEPTH = 4
_COPIES = 3  # of the logits in float32 that a cross-entropy makes at most: its result, its gradient, that of the logits

_changes = {}  # number of a file -> the change that its probes belong to


class _Seen:
    """What the probes have seen."""

    __slots__ = ("graphs", "outputs_with_graph", "kept", "released", "step", "logits", "most_logits")

    def __init__(self):
        self.graphs = 0  # values with a graph that were kept
        self.outputs_with_graph = 0  # of them those that `outputs_to_host` would take out of it
        self.kept = 0  # bytes of the card, of all that was kept
        self.released = {}  # number of a probe -> bytes of the card that one step could let go of; None: it is not known what is held
        self.step = 0  # in which `logits` were counted
        self.logits = 0  # bytes in float32 of all logits of that step
        self.most_logits = 0  # of any; None: not all are seen


_seen = _Seen()


def edit(change, source):
    """Puts probes into one file."""
    for place in kept.places(source):
        kept.probe(change, source, place, "keeps")
    for statement, name in release_outputs.places(source):
        number = len(_changes)
        _changes[number] = change
        change.trial_edits(source).insert_after(statement, _OUTPUTS % (number, name))
    probed = {id(part) for place in kept.places(source) for part in ast.walk(place)}
    for call in chunked_loss.places(source):
        if id(call) in probed:
            _seen.most_logits = None
            continue
        number = len(_changes)
        _changes[number] = change
        change.trial_edits(source).replace(call.args[0], _LOGITS % (number, source.of(call.args[0])))


def treat(change, number, value):
    """Called with each value that is kept; returns it."""
    for tensor in value if type(value) in (tuple, list) else value.values() if type(value) is dict else (value,):
        if kept.is_result(tensor):
            _seen.graphs += tensor.requires_grad
            if tensor.is_cuda and tensor.dim() > 0:
                _seen.outputs_with_graph += tensor.requires_grad
                _seen.kept += _storage(tensor)
    return value


def outputs(number, value):
    """Called by the program where `release_outputs` would let go of a value."""
    _changes[number].guarded(_note_outputs)(number, value)


def _note_outputs(number, value):
    before, now = _seen.released.get(number, 0), _bytes(value, _MOST_DEPTH)
    _seen.released[number] = None if before is None or now is None else max(before, now)


def logits(number, value):
    """Called by the program for the logits of a cross-entropy; returns them."""
    _changes[number].guarded(_note_logits)(value)
    return value


def _note_logits(value):
    import torch

    if _seen.most_logits is None or not isinstance(value, torch.Tensor):
        _seen.most_logits = None
        return
    if _seen.step != state.steps:
        _seen.step, _seen.logits = state.steps, 0
    _seen.logits += 4 * value.numel() if value.is_cuda else 0
    _seen.most_logits = max(_seen.most_logits, _seen.logits)


def _storage(tensor):
    """Bytes that stay as long as the tensor does, be it a view of them."""
    try:
        return tensor.untyped_storage().nbytes()
    except RuntimeError:  # it has none of its own
        return tensor.nbytes


def _bytes(value, depth):
    """Bytes of the card that the tensors of a value hold; None where something in it may hold others."""
    import torch

    if isinstance(value, torch.Tensor):
        return 0 if value.device.type == "cpu" else _storage(value) if type(value) is torch.Tensor else None
    if value is None or isinstance(value, (int, float, str, bytes)) or type(value).__module__ == "numpy":
        return 0
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    if parts is None or depth == 0:
        return None
    sizes = [_bytes(part, depth - 1) for part in parts]
    return None if None in sizes else sum(sizes)


def most():
    """{change: bytes that it could save at most}, of those of which that is known; 0: it has nothing to act on."""
    found = {}
    if not _seen.graphs:
        found["detach"] = 0
    if not _seen.outputs_with_graph:
        found["outputs_to_host"] = _seen.kept
    if None not in _seen.released.values():
        found["release_outputs"] = sum(_seen.released.values())
    if _seen.most_logits is not None:
        found["chunked_loss"] = _COPIES * _seen.most_logits
    return found
