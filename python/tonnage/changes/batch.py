# SPDX-License-Identifier: Apache-2.0
"""Another batch size: of DataLoaders that feed training, and of transformers' and Lightning's trainers."""

from . import arguments, hooks, loaders


def install(change):
    """value: the number of samples a batch."""
    if not (change.value or "").isdigit() or int(change.value) < 1:
        change.cannot("needs a number of samples: batch=4")
        return
    size = int(change.value)
    change.how = ""

    def use(loader, place):
        old = loaders.size_of(loader)
        if old is None or isinstance(old, bool):
            return
        loader.batch_sampler.batch_size = size
        object.__setattr__(loader, "batch_size", size if loader.batch_size is not None else None)
        change.note(place, "DataLoader: batch_size %s becomes %d" % (old, size))
        change.effect()
        written = loaders.edit_size(change, place, old, lambda node, text: str(size))
        words = " (now %s)" % written if written and not written.isdigit() else ""
        arguments.say(change, "Set the DataLoader's batch_size to %d%s." % (size, words))

    loaders.watch(change.guarded(use))
    arguments.hugging_face(change, {"per_device_train_batch_size": size})
    hooks.watch_training_mode()
