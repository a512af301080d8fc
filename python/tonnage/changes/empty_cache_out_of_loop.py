# SPDX-License-Identifier: Apache-2.0
"""Advice: empty_cache() in a loop costs time and frees nothing that the loop could use."""

from . import arguments, code, wrap

_HOW = "Take torch.cuda.empty_cache() out of the loop: it makes every step slower and leaves the peak as it is."


def edit(change, source):
    """Takes it out where it stands in a loop."""
    for call in code.calls(source, "empty_cache"):
        statement = source.statement(call)
        if source.above(statement, *code.LOOPS) is not None and code.method_statement(statement, "empty_cache") is call:
            change.edits(source).remove(statement)
            change.note(wrap.place_of(source, statement), "empty_cache() in a loop")
            change.effect()
            arguments.say(change, _HOW)
