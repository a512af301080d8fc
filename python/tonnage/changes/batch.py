# SPDX-License-Identifier: Apache-2.0
"""Another batch size: of DataLoaders that feed training, of transformers' and Lightning's trainers, and of a program
that reads it from its command line."""

from . import arguments, command_line, hooks, loaders


def install(change):
    """value: the number of samples a batch."""
    size = loaders.size_asked(change)
    if size is None:
        return
    change.how = ""

    def option(namespace, action, place):
        if action.choices is not None and size not in action.choices:
            return
        name = command_line.option_of(action)
        change.note(place, "%s %d becomes %d" % (name, getattr(namespace, action.dest), size))
        setattr(namespace, action.dest, size)
        change.arguments[name] = size
        change.effect()
        arguments.say(change, "Run the program with %s %d." % (name, size))

    command_line.watch(change, option)
    resize = change.guarded(loaders.resizer(change, size))
    loaders.watch(resize)
    loaders.watch_looks(lambda loader, place: None if loaders.has_optimizer() else resize(loader, place))
    arguments.hugging_face(change, {"per_device_train_batch_size": size})
    hooks.watch_training_mode()
