# SPDX-License-Identifier: Apache-2.0
"""Backward passes, as they begin and end, and hooks that pack what autograd saves: the sensor.

torch's function around the engine's call gets ours around its own statements (recode.py): no frame of ours stands under the
engine's call, and every module of torch that has imported the function by name has the changed one.
"""

import ast

from . import events, frames, guard, recode
from .state import state

_NAME = "_tonnage_backward"  # in the module of torch that the changed code runs in


def around_packing(push):
    """For the function that puts hooks around what autograd saves."""

    def _push_saved_tensors_default_hooks(pack, unpack):
        events.saved_tensors_packed()
        if getattr(pack, "__module__", None) == "torch.utils.checkpoint":
            events.checkpoint_met()
        return push(pack, unpack)

    return _push_saved_tensors_default_hooks


def watch_passes(module, name):
    """Gives torch's function other code."""
    return recode.replace(module, getattr(module, name), _NAME, _Passes, _around, ("t_outputs", "args"))


def _around(body):
    """torch's statements between our two calls."""
    place = body[0]
    begin, end = recode.call("%s.begin(t_outputs, args)" % _NAME, place), recode.call("%s.end()" % _NAME, place)
    whole = ast.Try(body=body, handlers=[], orelse=[], finalbody=[end])
    return [begin, recode.at(whole, place)]


_CREATE_GRAPH = 2  # of what torch hands on: gradients, retain_graph, create_graph, inputs


@guard.guarded
def _begins(outputs, handed_on):
    state.in_backward += 1
    state.backwards += 1
    if not state.cuda_initialized:
        return
    if state.in_backward == 1:
        events.backward_began(frames.caller(1))
    events.graph_in_use(outputs, len(handed_on) > _CREATE_GRAPH and handed_on[_CREATE_GRAPH] is True)


@guard.guarded
def _ended():
    state.in_backward = max(0, state.in_backward - 1)
    if state.in_backward == 0 and state.cuda_initialized:
        events.backward_ended()


class _Passes:
    """What the changed code calls."""

    begin, end = staticmethod(_begins), staticmethod(_ended)
