# SPDX-License-Identifier: Apache-2.0
"""Python's, numpy's and torch's random numbers on a virtual GPU: where the program seeds nothing they are the same in each run, so
that two runs of a program that draws (augmentations, lengths, which branch to take, a shuffled data set) need the same to the byte.
torch's generator of the CPU begins with the system's noise; those of cards begin with the same seed by themselves. What the program
seeds is as it says. Ranks of one job draw different numbers.
"""

import sys

from . import imports
from .state import state

_NAMES = ("random", "numpy.random", "torch")


def install():
    """Seeds each when it has been imported, before the program draws from it."""
    for name in _NAMES:
        imports.watch(name, _begin)


def renew():
    """A forked trial begins as a fresh process does."""
    for name in _NAMES:
        if name in sys.modules:
            _begin(sys.modules[name])


def _begin(module):
    try:
        generator = getattr(module, "default_generator", None)  # torch's; its manual_seed() would wake up the cards
        seed = module.seed if generator is None else generator.manual_seed
        seed(state.rank or 0)
    except Exception:
        pass  # a module of that name that is not the known one
