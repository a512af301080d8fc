# SPDX-License-Identifier: Apache-2.0
"""SGD without momentum keeps no state."""

from . import code, optimizer_calls

_HOW = "Without momentum SGD keeps nothing: one copy of the parameters less."


def edit(change, source):
    """Takes the momentum out where SGD is made with one."""
    for call in code.optimizers(source, ("SGD",)):
        if code.keyword(call, "momentum") is not None or len(call.args) > 2:
            optimizer_calls.set_one(change, source, call, "momentum", "0", _HOW, position=2)
            word = code.keyword(call, "nesterov")
            if word is not None:
                change.edits(source).replace(word.value, "False")
