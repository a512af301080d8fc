# SPDX-License-Identifier: Apache-2.0
"""Shapes of inputs, where they can be seen for nothing: batches of a DataLoader, arguments of module calls.

Programs that show neither are told apart by the bytes that they ask the allocator for in a step: the same work asks for
the same bytes, a new shape for others. That is used to judge whether anything new comes, and never reported as a shape.
"""

import collections
import collections.abc

from . import guard, peaks
from .state import state

_MAX = 10000
_DEPTH = 3
_MAX_CYCLE = 8

_volumes = set()
_recent = collections.deque(maxlen=32)  # volumes of the last steps


class _Seen:
    """What came since the last step."""

    __slots__ = ("new_shape", "volume")

    def __init__(self):
        self.new_shape = False
        self.volume = 0  # the allocator's total at the last step's end


_seen = _Seen()


@guard.guarded
def batch_fetched(batch):
    """Says whether its shapes were not met before."""
    batch.new_shape = _note(("batch", signature(batch.data)))


@guard.alone
def note_inputs(args, kwargs):
    """The arguments of a module call; returns their signature."""
    found = signature((args, kwargs))
    _note(("call", found))
    return found


@guard.guarded
def step_ended(step):
    """Says whether it brought something new: a shape, or a volume of requested bytes, not met before."""
    total = peaks.volume()
    volume, _seen.volume = total - _seen.volume, total
    step.new_input, _seen.new_shape = _seen.new_shape, False
    _recent.append(volume)
    if volume not in _volumes:
        step.new_input = True
        if len(_volumes) < _MAX:
            _volumes.add(volume)


def signature(value, depth=0):
    """The shapes of the tensors in a value, as something hashable; None for what holds none."""
    if isinstance(value, state.torch.Tensor):
        return tuple(value.shape)
    if depth >= _DEPTH:
        return None
    if isinstance(value, collections.abc.Mapping):
        parts = [(str(key), signature(item, depth + 1)) for key, item in list(value.items())[:32]]
        return tuple(part for part in parts if part[1] is not None) or None
    if isinstance(value, (list, tuple)):
        return tuple(part for part in (signature(item, depth + 1) for item in value[:32]) if part is not None) or None
    return None


@guard.alone
def begins_generation(found, frame):
    """False in the middle of a `generate` call, where a run should not be ended: its cache is still growing. True
    outside of one, and for its first pass (more than one token), when all earlier ones are over."""
    inside = False
    while frame is not None:
        if frame.f_code.co_name == "generate":
            inside = True
            break
        frame = frame.f_back
    return not inside or _longest_second(found) > 1


def _longest_second(found):
    """The largest second dimension of input_ids or inputs_embeds."""
    longest = 0
    for part in found or ():
        for item in part if isinstance(part, tuple) else ():
            if isinstance(item, tuple) and len(item) == 2 and item[0] in ("input_ids", "inputs_embeds"):
                longest = max(longest, item[1][1] if len(item[1]) > 1 else 0)
    return longest


def _note(found):
    if found[1] is None:
        return False
    state.shapes_visible = True
    if found in state.shapes:
        return False
    _seen.new_shape = True
    if len(state.shapes) < _MAX:
        state.shapes.add(found)
    return True


def vary():
    """True when the last steps differed, and not in turns, as those of several optimizers do."""
    steps = list(_recent)
    if len(set(steps)) < 3:
        return False
    return not any(all(steps[i] == steps[i - cycle] for i in range(len(steps) // 2, len(steps)))
                   for cycle in range(1, _MAX_CYCLE + 1))


def in_words():
    """How many different inputs there were, as far as can be told."""
    if state.shapes_visible and len(state.shapes) > 1:
        return "%s shapes" % "{:,}".format(len(state.shapes))
    return "%s amounts asked for" % "{:,}".format(len(_volumes))
