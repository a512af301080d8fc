# SPDX-License-Identifier: Apache-2.0
"""Arguments of trainers: transformers' TrainingArguments and Lightning's Trainer.

A wish is {name: value}, or a function of the arguments that returns one. It is fulfilled when the object is made,
wherever its arguments come from; the patch edits the call in the user's file where there is one, else `arguments`
of the change's entry names what to set.
"""

import functools
import sys

from _tonnage_guest import imports

from . import code, hooks, rewrite, source

_LIGHTNING = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")


def hugging_face(change, wish, note=None):
    """Sets fields of TrainingArguments. note(arguments) is called afterwards."""

    def watch(module):
        cls = module.TrainingArguments
        original = cls.__post_init__

        @functools.wraps(original)
        def __post_init__(self):
            change.guarded(_set_fields)(change, self, wish, sys._getframe(1), note)
            original(self)

        cls.__post_init__ = __post_init__

    imports.watch("transformers.training_args", change.guarded(watch))


def lightning(change, wish):
    """Sets keyword arguments of Lightning's Trainer."""

    def watch(module):
        cls = module.Trainer
        original = cls.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            wishes = change.guarded(_keywords, {})(change, kwargs, wish, sys._getframe(1))
            original(self, *args, **{**kwargs, **wishes})

        cls.__init__ = __init__

    for name in _LIGHTNING:
        imports.watch(name, change.guarded(watch))


def is_managed(frame, depth=24):
    """"hf" or "lightning" when a frame stands under one of their trainers, else None: under Fabric the program has a loop of its own."""
    while frame is not None and depth:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("transformers.trainer"):
            return "hf"
        if name.startswith(("lightning.pytorch.", "pytorch_lightning.")):
            return "lightning"
        frame, depth = frame.f_back, depth - 1
    return None


def _set_fields(change, arguments, wish, frame, note):
    values = wish(arguments) if callable(wish) else wish
    values = {name: value for name, value in values.items() if hasattr(arguments, name)}
    if not values:
        return
    for name, value in values.items():
        setattr(arguments, name, value)
    _tell(change, values, frame, "TrainingArguments", type(arguments).__name__)
    change.effect()
    if note is not None:
        note(arguments)


def _keywords(change, kwargs, wish, frame):
    values = wish(kwargs) if callable(wish) else wish
    if values:
        _tell(change, values, frame, "Trainer", "Trainer")
        change.effect()
    return values


def _tell(change, values, frame, what, name):
    place = hooks.place(frame)
    text = ", ".join("%s=%r" % pair for pair in values.items())
    change.arguments.update(values)
    change.note(place, "%s(%s)" % (what, text))
    say(change, "Pass %s to %s." % (text, name))
    _patch(change, place, values, name)


def say(change, text):
    """Adds a sentence to `how`, once."""
    if text not in change.how:
        change.how = (change.how + " " + text).strip()


def _patch(change, place, values, name):
    text = rewrite.source_at(place)
    calls = [call for call in text.calls_at(place["line"]) if code.last(call.func) == name] if text else []
    if calls:
        edits = change.edits(text)
        try:
            for key, value in values.items():
                code.set_keyword(edits, calls[-1], key, repr(value))
        except source.Conflict:
            change.patches.pop(text.path, None)
