# SPDX-License-Identifier: Apache-2.0
"""Trainers that count batches themselves, where the end of a loader alone would not bring their epoch to its end.

Lightning validates and saves at the batch that it takes for the last by the loader's length. A shortened epoch says which
batch that is, in Lightning's own variables.
Hugging Face's Trainer saves and evaluates by default after so many steps, which a shortened run never makes: it does so
at the end of a shortened epoch.
"""

import functools
import sys

from . import guard, imports
from .state import state

_MAX_FRAMES = 12


def install():
    """Waits for transformers."""
    imports.watch("transformers.trainer_callback", guard.guarded(_watch_flow))


def end_with_this_batch(frame):
    """Tells a trainer that the batch which is being fetched in `frame` is the last of its epoch; returns how many it had
    planned. None where no trainer has to be told."""
    if "lightning.pytorch" not in sys.modules and "pytorch_lightning" not in sys.modules:
        return None
    fetcher = None
    for _ in range(_MAX_FRAMES):
        frame = frame.f_back
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if fetcher is None:
            fetcher = owner if hasattr(owner, "fetched") and hasattr(owner, "combined_loader") else None
        elif frame.f_code.co_name == "advance" and hasattr(owner, "batch_progress"):
            return _last_of_epoch(fetcher, getattr(owner, "trainer", None))
    return None


def _last_of_epoch(fetcher, trainer):
    if trainer is None or fetcher.length is None:
        return None
    planned, fetcher.length = fetcher.length, fetcher.fetched + 1
    if getattr(trainer, "_val_check_time_interval", None) is not None:
        trainer._last_val_time = float("-inf")
    elif getattr(trainer, "val_check_batch", None) is not None:
        trainer.val_check_batch = float("inf")  # at the end of the epoch
    return planned


def _watch_flow(module):
    cls = module.DefaultFlowCallback
    original = cls.on_epoch_end

    @functools.wraps(original)
    def on_epoch_end(self, args, state, control, **kwargs):
        control = original(self, args, state, control, **kwargs)
        _ask_for_rest(args, control)
        return control

    cls.on_epoch_end = on_epoch_end


@guard.guarded
def _ask_for_rest(args, control):
    if state.fast_forward is None:
        return
    if _by_steps(args, "eval_strategy"):
        control.should_evaluate = True
    if _by_steps(args, "save_strategy"):
        control.should_save = True


def _by_steps(args, name):
    strategy = getattr(args, name, None)
    return getattr(strategy, "value", strategy) == "steps"
