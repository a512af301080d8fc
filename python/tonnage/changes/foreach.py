# SPDX-License-Identifier: Apache-2.0
"""foreach=False: update one parameter at a time (foreach=False), without temporaries of all at once."""

from . import optimizer_calls

_HOW = "Make the optimizer with foreach=False: its updates need no temporary copy of all parameters."
_KINDS = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD", "Rprop",
          "Adafactor")


def edit(change, source):
    """Adds the argument where optimizers are made."""
    optimizer_calls.add(change, source, _KINDS, "foreach", "False", _HOW)
