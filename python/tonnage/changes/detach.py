# SPDX-License-Identifier: Apache-2.0
"""What a loop keeps for later is detached from its graph: losses that are added up, outputs in a list.

The text says where something is kept over the steps of a loop; whether it carries a graph is seen when it is kept.
The patch has only those places.
"""

from . import arguments, kept

_HOW = "Detach what is kept beyond a step: `.detach()`, or `.item()` for a number."


def edit(change, source):
    """Looks at everything that the loops of one file keep."""
    for place in kept.places(source):
        kept.probe(change, source, place, "detach")


def treat(change, number, value):
    """Called with each value that is kept; returns what shall be kept."""
    changed, text = kept.each_tensor(value, lambda t: t.requires_grad, lambda t: t.detach(), "%s.detach()")
    if changed is value:
        return value
    kept.effective(change, number, text, "detached from its graph")
    arguments.say(change, _HOW)
    return changed
