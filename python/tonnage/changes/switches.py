# SPDX-License-Identifier: Apache-2.0
"""Options of the program's own: the driver writes them onto the command line, so that a trial is the line that a person would
run. Here it is seen that the program was given them; what they did is told by pace.py."""

import sys


def install(change):
    """value: the words, as in "--batch-size 2 --grad-accum-steps 4"."""
    words = (change.value or "").split()
    if not words or any(word not in sys.argv for word in words):
        change.cannot("it has to stand on the program's command line")
        return
    change.how = "Run the program with %s." % change.value
    change.note(None, change.value)
    change.effect()
