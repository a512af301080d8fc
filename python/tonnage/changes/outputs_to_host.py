# SPDX-License-Identifier: Apache-2.0
"""Outputs that a loop keeps for later move to the host: predictions, features, hidden states."""

from . import arguments, kept

_HOW = "Move what is kept beyond a step to the host: `.detach().cpu()`."


def edit(change, source):
    """Looks at everything that the loops of one file keep."""
    for place in kept.places(source):
        kept.probe(change, source, place, "outputs_to_host")


def treat(change, number, value):
    """Called with each value that is kept; returns what shall be kept. Sums stay where they are."""
    def concerns(tensor):
        return tensor.is_cuda and tensor.dim() > 0

    changed, text = kept.each_tensor(value, concerns, lambda tensor: tensor.detach().cpu(), "%s.detach().cpu()")
    if changed is value:
        return value
    kept.effective(change, number, text, "moved to the host")
    arguments.say(change, _HOW)
    return changed
