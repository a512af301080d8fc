# SPDX-License-Identifier: Apache-2.0
"""A deep copy of a state, such as the best so far that is to be saved, is made on the host.

Copies of modules stay where they are: the program goes on to compute with them.
"""

from . import arguments, code, source, wrap

_HOW = "Copy a state that is to be kept or saved to the host, tensor by tensor, instead of on the device."
_HELPER = '''\
def copied_to_host(value):
    """A deep copy of a state, with its tensors on the host."""
    if torch.is_tensor(value):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return type(value)((key, copied_to_host(part)) for key, part in value.items())
    if type(value) in (list, tuple):
        return type(value)(copied_to_host(part) for part in value)
    return copy.deepcopy(value)


'''
_calls = []  # (change, source, call) of each probe
_names = {}


def edit(change, text):
    """Looks at every deepcopy() of one file."""
    for call in code.calls(text, "deepcopy"):
        if len(call.args) == 1 and not call.keywords:
            _calls.append((change, text, call))
            seen = '__import__("sys").modules["_tonnage_changes.copies_to_host"].copied(%d, %s)'
            change.trial_edits(text).replace(call, seen % (len(_calls) - 1, text.of(call.args[0])))


def copied(number, value):
    """Called by the program in the place of deepcopy()."""
    import copy

    change, text, call = _calls[number]
    if not isinstance(value, dict) or not _is_on_device(value):
        return copy.deepcopy(value)
    return change.guarded(_on_host, None)(change, text, call, value) or copy.deepcopy(value)


def _on_host(change, text, call, value):
    import copy

    import torch

    if not _names:
        _names.update(torch=torch, copy=copy)
        exec(_HELPER, _names)
    place = wrap.place_of(text, call)
    if place not in change.places:
        change.note(place, "the copy is made on the host")
        arguments.say(change, _HOW)
        _patch(change, text, call)
    change.effect()
    return _names["copied_to_host"](value)


def _patch(change, text, call):
    edits, name = change.edits(text), code.free_name(text, "copied_to_host")
    try:
        edits.replace(call, "%s(%s)" % (name, text.of(call.args[0])))
        if len(edits.spans) == 1:
            wrap.insert_helper(edits, _HELPER.replace("copied_to_host", name))
            code.need_import(edits, "torch")
            code.need_import(edits, "copy")
    except source.Conflict:
        change.patches.pop(text.path, None)


def _is_on_device(value):
    import torch

    if torch.is_tensor(value):
        return value.is_cuda
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_is_on_device(part) for part in parts)
