# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that torch.load() would put on the device is loaded on the host: load_state_dict() copies it from there.

Whether it would is seen as it is loaded: torch asks where each storage was saved from. What is no checkpoint (no dict) is loaded as
the program says.
"""

from . import arguments, code, wrap

_HOW = "Load the checkpoint on the CPU, torch.load(..., map_location=\"cpu\"): load_state_dict() copies it to where the model is."
_calls = []  # (change, source, call) of each probe


def edit(change, source):
    """Looks at every torch.load() of one file."""
    for call in code.calls(source, "load"):
        if code.dotted(call.func) != "torch.load" or not call.args:
            continue
        _calls.append((change, source, call))
        seen = '__import__("sys").modules["_tonnage_changes.map_location"].loaded(%d, ' % (len(_calls) - 1)
        line, column = source.start(call)
        end_line, end_column = source.end(call.func)
        edits = change.trial_edits(source)
        rest = source.lines[end_line - 1][end_column:]
        edits.spans.append((line, column, end_line, end_column + len(rest) - len(rest.lstrip(" ")) + 1, seen))


def loaded(number, f, map_location=None, *args, **kwargs):
    """Called by the program in the place of torch.load()."""
    import torch

    change, source, call = _calls[number]
    where = f.tell() if hasattr(f, "tell") else None
    asked = set()
    load = change.guarded(lambda: torch.load(f, _watching(torch, map_location, asked), *args, **kwargs), None)
    value = load() if not _is_host(map_location) else None
    if isinstance(value, dict):
        if any(place.startswith("cuda") for place in asked):
            change.guarded(_note, None)(change, source, call)
        return value
    if where is not None:
        f.seek(where)
    return torch.load(f, map_location, *args, **kwargs)


def _is_host(map_location):
    return str(map_location) == "cpu"


def _watching(torch, wished, asked):
    """A map_location that keeps every storage on the host, and notes where the program would have put it."""

    def place(storage, location):
        if isinstance(wished, dict):
            asked.add(str(wished.get(location, location)))
        elif isinstance(wished, (str, torch.device)):
            asked.add(str(wished))
        elif isinstance(wished, int):
            asked.add("cuda")
        elif wished is None:
            asked.add(location)
        elif callable(wished):
            meant = wished(storage, location)
            asked.add(str(getattr(meant, "device", location)))
        return storage

    return place


def _note(change, source, call):
    place = wrap.place_of(source, call)
    if place not in change.places:
        change.note(place, "the checkpoint is loaded on the host")
        arguments.say(change, _HOW)
        code.set_keyword(change.edits(source), call, "map_location", '"cpu"', position=1)
    change.effect()
