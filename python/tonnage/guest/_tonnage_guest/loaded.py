# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on the card: tensors that a file was loaded into and that load_state_dict copies from.

A loaded file is a checkpoint once a model takes it that is made of tensors of the same shapes, or once an optimizer takes its part with
`state` and `param_groups`. Data and embeddings that lie in files stay what they are. What a model or an optimizer keeps itself is
theirs: other rows of the same look claim it.
"""

import collections

from . import frames, guard, holds, metadata, methods, references
from .state import state

CHECKPOINT, STATE = "loaded checkpoint", "loaded optimizer state"  # src/analyze/find_checkpoint.c knows them
_MOST_GROUPS = 256
_MOST_TENSORS = 100000
_DEEPEST = 6
_SHARE = 0.5  # of the bytes of a mapping, that a model has in the same shapes

_groups = []


class _Group:
    """The tensors on the card of one mapping of a loaded file."""

    __slots__ = ("tensors", "shapes", "of_optimizer", "label")

    def __init__(self, tensors, of_optimizer):
        self.tensors = [references.to(tensor) for tensor in tensors]
        self.shapes = collections.Counter((tuple(tensor.shape), tensor.nbytes) for tensor in tensors)
        self.of_optimizer = of_optimizer
        self.label = None  # what they are, once they are used

    def living(self):
        return [tensor for tensor in (reference() for reference in self.tensors) if tensor is not None]

    def is_of(self, shapes):
        """True when a model of these shapes has most of it."""
        whole = sum(size * count for (_, size), count in self.shapes.items())
        same = sum(kind[1] * min(count, shapes[kind]) for kind, count in self.shapes.items())
        return same >= _SHARE * whole


# ---- what is loaded ----


def around_load(original):
    """For torch's functions that read a file, and safetensors'."""

    def load(*args, **kwargs):
        value = original(*args, **kwargs)
        note(value)
        return value

    note = guard.guarded(_note)
    load.__name__, load.__doc__ = original.__name__, original.__doc__
    return load


def around_read(original):
    """For what torch.distributed.checkpoint reads shards with, into the tensors that it is handed."""

    def read(state_dict, *args, **kwargs):
        value = original(state_dict, *args, **kwargs)
        note(state_dict)
        return value

    note = guard.guarded(_note)
    read.__name__, read.__doc__ = original.__name__, original.__doc__
    return read


def _note(value):
    if not state.cuda_initialized:
        return
    _groups[:] = [group for group in _groups if group.living()]
    _look_into(value, 0)


def _look_into(value, depth):
    if depth > _DEEPEST or len(_groups) >= _MOST_GROUPS:
        return
    if isinstance(value, dict):
        of_optimizer = "state" in value and "param_groups" in value
        tensors = _all_below(value, 0) if of_optimizer else list(filter(_on_card, value.values()))
        if tensors:
            _groups.append(_Group(tensors[:_MOST_TENSORS], of_optimizer))
        if of_optimizer:
            return
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            if isinstance(part, (dict, list, tuple)):
                _look_into(part, depth + 1)


def _all_below(value, depth):
    if _on_card(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if depth > _DEEPEST or not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in _all_below(part, depth + 1)]


def _on_card(value):
    return isinstance(value, state.torch.Tensor) and value.is_cuda


# ---- what takes it ----


def watch_modules(cls, name):
    """Attaches to the method that a model takes its state by."""
    methods.notice(cls, name, guard.guarded(_module_takes))


def watch_optimizers(cls, name):
    """Attaches to the same of an optimizer."""
    methods.notice(cls, name, guard.guarded(_optimizer_takes))


def _module_takes(module):
    if not _groups:
        return
    shapes = collections.Counter((tuple(tensor.shape), tensor.nbytes) for tensor in module.parameters())
    _use([group for group in _groups if not group.of_optimizer and group.label is None and group.is_of(shapes)], CHECKPOINT)


def _optimizer_takes(optimizer):
    holds.note_optimizer(optimizer)
    _use([group for group in _groups if group.of_optimizer and group.label is None], STATE)


def _use(groups, label):
    for group in groups:
        group.label = label
    found = rows() if groups else []
    frame = frames.place(frames.caller()) if found else None
    if frame is None:
        return
    metadata.looks.append((metadata.now(), found))
    place = frames.describe(frame)
    metadata.calls.append((metadata.now(), "load_state_dict", place["file"], place["line"], place["function"]))


def rows():
    """Of the tensors of checkpoints that are there still."""
    return [row for group in _groups if group.label is not None for tensor in group.living()
            for row in holds.rows_of("temporaries", tensor, group.label, whole=True)]


holds.lasting.append(guard.alone(lambda: rows() or []))
