# SPDX-License-Identifier: Apache-2.0
"""Python's and numpy's random numbers on a virtual GPU: where the program seeds nothing they are the same in each run, so that
two runs of a program that draws (augmentations, lengths, which branch to take) need the same to the byte. torch's generators
begin with the same seed by themselves. What the program seeds is as it says. Ranks of one job draw different numbers.
"""

import sys

from . import imports
from .state import state


def install():
    """Seeds each when it has been imported, before the program draws from it."""
    for name in ("random", "numpy.random"):
        imports.watch(name, _begin)


def renew():
    """A forked trial begins as a fresh process does."""
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            _begin(sys.modules[name])


def _begin(module):
    try:
        module.seed(state.rank or 0)
    except Exception:
        pass  # a module of that name that is not the known one
