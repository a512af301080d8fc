# SPDX-License-Identifier: Apache-2.0
"""On a virtual GPU a generation ends at its greatest length.

transformers asks the device whether all sequences are finished; no kernel runs, so the answer would always be no and
the cache would grow for ever. That the greatest length is reached, where a real run ends at the latest, is known on the
host: that much is answered here. A sequence that a real model would end earlier runs to that length.
"""

import functools

from . import guard, imports


class _Generation:
    """The one that runs."""

    __slots__ = ("at_end",)

    def __init__(self):
        self.at_end = False  # its greatest length is reached


_generation = _Generation()


def install():
    """Waits for transformers."""
    imports.watch("transformers.generation.stopping_criteria", guard.guarded(_watch_length))
    imports.watch("transformers.generation.utils", guard.guarded(_answer))


def _watch_length(module):
    cls = module.MaxLengthCriteria
    original = cls.__call__

    @functools.wraps(original)
    def __call__(self, input_ids, *args, **kwargs):
        _generation.at_end = input_ids.shape[-1] >= self.max_length
        return original(self, input_ids, *args, **kwargs)

    cls.__call__ = __call__


def _answer(module):
    cls = module.GenerationMixin
    original = cls._has_unfinished_sequences

    @functools.wraps(original)
    def _has_unfinished_sequences(self, *args, **kwargs):
        at_end, _generation.at_end = _generation.at_end, False
        return original(self, *args, **kwargs) and not at_end

    cls._has_unfinished_sequences = _has_unfinished_sequences
