# SPDX-License-Identifier: Apache-2.0
"""The option of the program's command line that says how many samples a batch has: `--batch 8`, where argparse reads it.

Where two options may be meant, neither is.
"""

import functools
import sys

from _tonnage_guest import imports

from . import hooks

_NAMES = {"batch", "batch_size", "batchsize", "bs", "micro_batch", "micro_batch_size", "train_batch",
          "train_batch_size", "per_device_train_batch_size"}


def watch(change, use):
    """use(namespace, action, place) when the program has read its arguments and one of them is the batch's size: the
    attribute action.dest of the namespace, an int."""

    def look(parser, namespace, frame):
        found = [action for action in parser._actions if _is_batch(action, namespace)]
        if len(found) == 1:
            use(namespace, found[0], hooks.place(frame))

    def patch(module):
        original = module.ArgumentParser.parse_known_args

        @functools.wraps(original)
        def parse_known_args(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            change.guarded(look)(self, result[0], sys._getframe(1))
            return result

        module.ArgumentParser.parse_known_args = parse_known_args

    imports.watch("argparse", change.guarded(patch))


def option_of(action):
    """How the option is written: the longest of its names."""
    return max(action.option_strings, key=len)


def _is_batch(action, namespace):
    value = getattr(namespace, action.dest, None)
    return action.dest in _NAMES and bool(action.option_strings) and type(value) is int and value > 0
