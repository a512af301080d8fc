# SPDX-License-Identifier: Apache-2.0
"""What a program draws at random once a batch (accumulate.py): Mixup's share, a coin that is tossed for all samples.

Python's and numpy's generators take numbers of 32 bits from a table of 624. Where it stands when a batch is fetched and when its backward
pass begins says how many were taken: fewer than there are samples means that not each sample has its own.
"""

import sys

_TABLE = 624  # MT19937


class Draws:
    """Watches the generators of one loop."""

    def __init__(self):
        self.before = {}  # name -> where its table stood when the batch was fetched

    def fetched(self):
        self.before = _positions()

    def of_batch(self, samples):
        """Names of the generators from which something was drawn for the whole batch since it was fetched."""
        now = _positions()
        return [name for name in now if name in self.before and 0 < _taken(self.before[name], now[name]) < samples]


def _positions():
    """{name: (first number of the table, where it stands)} of the generators that the program has imported."""
    found = {}
    python = getattr(sys.modules.get("random"), "getstate", None)  # a program may have a random.py of its own
    numpy = getattr(sys.modules.get("numpy.random"), "get_state", None)
    if python is not None:
        table = python()[1]
        found["random"] = table[0], table[-1]
    if numpy is not None:
        name, table, position = numpy()[:3]
        if name == "MT19937":
            found["numpy.random"] = int(table[0]), position
    return found


def _taken(before, now):
    """Numbers that were taken; more than a table are as many as one."""
    if before[0] == now[0]:
        return now[1] - before[1]
    return min(_TABLE, now[1] + _TABLE - before[1])
