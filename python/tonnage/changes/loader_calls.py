# SPDX-License-Identifier: Apache-2.0
"""Other arguments for every DataLoader that is made, and for the fields of transformers' TrainingArguments that rule its own.

Arguments are replaced as a loader is made, whoever makes it. The patch sets them where the user's file has that call.
"""

import functools
import sys

from _tonnage_guest import imports

from . import arguments, code, hooks, rewrite, source

# In the order of the constructor, for calls that give them by position.
_POSITIONS = {"batch_size": 1, "shuffle": 2, "sampler": 3, "batch_sampler": 4, "num_workers": 5, "collate_fn": 6, "pin_memory": 7}
_FIELDS = {"num_workers": "dataloader_num_workers", "prefetch_factor": "dataloader_prefetch_factor",
           "pin_memory": "dataloader_pin_memory", "persistent_workers": "dataloader_persistent_workers"}  # fmt: skip

_without_patch = set()  # changes


def change_all(change, wish):
    """wish({"num_workers", "prefetch_factor", "pin_memory", "persistent_workers"}) -> what of these becomes what."""

    def watch(module):
        cls = module.DataLoader
        original = cls.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            wishes = change.guarded(_wishes, {})(change, type(self).__name__, args, kwargs, wish, sys._getframe(1))
            rest = {name: value for name, value in kwargs.items() if name not in wishes}
            placed = list(args)
            for name in [name for name in wishes if _POSITIONS.get(name, 99) - 1 < len(args) - 1]:
                placed[_POSITIONS[name]] = wishes.pop(name)
            original(self, *placed, **rest, **wishes)

        cls.__init__ = __init__

    imports.watch("torch.utils.data.dataloader", change.guarded(watch))
    arguments.hugging_face(change, lambda fields: _fields(fields, wish))


def has(args, kwargs):
    """What a call of the constructor asks for, with torch's defaults."""
    found = {"num_workers": 0, "prefetch_factor": None, "pin_memory": False, "persistent_workers": False}
    for name in found:
        position = _POSITIONS.get(name, 99)
        found[name] = kwargs.get(name, args[position] if position < len(args) else found[name])
    if found["prefetch_factor"] is None and found["num_workers"]:
        found["prefetch_factor"] = 2
    return found


def _wishes(change, kind, args, kwargs, wish, frame):
    # transformers takes its own arguments' values; they were changed there.
    if arguments.is_managed(frame) == "hf":
        return {}
    before = has(args, kwargs)
    wishes = {name: value for name, value in wish(before).items() if before[name] != value}
    if not wishes:
        return {}
    place = hooks.place(frame)
    text = ", ".join("%s=%r" % pair for pair in sorted(wishes.items()))
    change.note(place, "DataLoader with %s" % text)
    change.effect()
    arguments.say(change, "Make the DataLoader with %s." % text)
    _patch(change, kind, place, wishes)
    return wishes


def _patch(change, kind, place, wishes):
    """Where one call of several cannot be edited, there is no patch: it would not be what was tried."""
    text = rewrite.source_at(place) if place is not None else None
    calls = text.calls_at(place["line"]) if text is not None else ()
    calls = [call for call in calls if code.last(call.func) == kind] or [
        call for call in calls if "Loader" in (code.last(call.func) or "")]
    # what is handed on as **words may have the same name
    plain = [call for call in calls if all(word.arg is not None for word in call.keywords)]
    if len(calls) == len(plain) == 1 and change not in _without_patch:
        try:
            for name, value in sorted(wishes.items()):
                code.set_keyword(change.edits(text), calls[0], name, repr(value), _POSITIONS.get(name))
            return
        except source.Conflict:
            pass
    _without_patch.add(change)
    change.patches.clear()


def _fields(fields, wish):
    before = {name: getattr(fields, field, None) for name, field in _FIELDS.items()}
    if not isinstance(before["num_workers"], int):
        return {}
    if before["prefetch_factor"] is None and before["num_workers"]:
        before["prefetch_factor"] = 2
    return {_FIELDS[name]: value for name, value in wish(before).items() if before[name] != value}
