# SPDX-License-Identifier: Apache-2.0
"""Python's, numpy's and torch's random numbers on a virtual GPU: where the program seeds nothing they are the same in each run, so
that two runs of a program that draws (augmentations, lengths, which branch to take, a shuffled data set) need the same to the byte.
torch's generator of the CPU begins with the system's noise; those of cards begin with the same seed by themselves. What the program
seeds is as it says. Ranks of one job draw different numbers.

numpy's generators that the program makes without a seed (`default_rng()`, `RandomState()`: Optuna's samplers) ask the system for one
at the same place each, which is answered with the next of a series.
"""

import sys

from . import imports
from .state import state

_NAMES = ("random", "numpy.random", "torch")
_SEEDS = "numpy.random.bit_generator"  # whose randbits() new generators are seeded from


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
        if module.__name__ == "numpy.random" and hasattr(sys.modules.get(_SEEDS), "randbits"):
            from random import Random  # numpy has imported it

            sys.modules[_SEEDS].randbits = Random(state.rank or 0).getrandbits
        generator = getattr(module, "default_generator", None)  # torch's; its manual_seed() would wake up the cards
        seed = module.seed if generator is None else generator.manual_seed
        seed(state.rank or 0)
    except Exception:
        pass  # a module of that name that is not the known one
