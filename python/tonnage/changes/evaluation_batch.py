# SPDX-License-Identifier: Apache-2.0
"""Smaller batches in evaluation: of DataLoaders that do not feed training, and of transformers' trainer.

Each sample's outputs are what they were, but for rounding: layers that look at the whole batch do so in training
only. A mean over batches of different sizes weighs them differently.
"""

from . import arguments, hooks, loaders


def install(change):
    """value: the number of samples a batch."""
    size = loaders.size_asked(change)
    if size is None:
        return
    change.how = ""
    loaders.watch_evaluation(change.guarded(loaders.resizer(change, size)))
    arguments.hugging_face(change, {"per_device_eval_batch_size": size})
    hooks.watch_training_mode()
