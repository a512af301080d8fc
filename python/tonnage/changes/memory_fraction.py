# SPDX-License-Identifier: Apache-2.0
"""The limit that a program sets itself with set_per_process_memory_fraction() goes up to the whole card."""

from . import arguments, code, wrap


def edit(change, source):
    """Finds the calls of one file."""
    for call in code.calls(source, "set_per_process_memory_fraction"):
        code.set_keyword(change.edits(source), call, "fraction", "1.0", position=0)
        change.note(wrap.place_of(source, call), "the limit is the whole card")
        change.effect()
        arguments.say(change, "Raise the limit that the program sets itself: set_per_process_memory_fraction(1.0).")
