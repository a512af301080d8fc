# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that would be read onto the device is read on the host: load_state_dict() copies it from there.

Whether it would is seen as it is read. Four ways to read one:

    torch.load()                     torch asks where each storage was saved from; what is no checkpoint (no dict) is loaded as the program says
    safetensors' load_file()         its `device`
    Model.load_from_checkpoint()     Lightning's: the model is made where the file's tensors were
    torch.distributed.checkpoint     reads into tensors that are there: those that are made for it are made on the host
"""

import ast

from . import arguments, code, wrap

_HOW = "Load the checkpoint on the CPU, %s: load_state_dict() copies it to where the model is."
_HOW_MODEL = "Load the model of the checkpoint on the CPU, load_from_checkpoint(..., map_location=\"cpu\"): a Trainer moves the one that it trains."
_HOW_MADE = "Make the tensors that torch.distributed.checkpoint reads into on the CPU (device=\"cpu\"): load_state_dict() copies them."
_MAKERS = ("empty", "zeros", "ones", "empty_like", "zeros_like", "ones_like")
_calls = []  # (change, source, call) of each probe
_noted = set()  # numbers of those that did something


def edit(change, source):
    """Looks at everything in one file that reads a checkpoint."""
    for call in code.calls(source, "load", "load_file", "load_from_checkpoint"):
        name = code.dotted(call.func)
        if not call.args:
            continue
        if name == "torch.load":
            _probe(change, source, call, "loaded")
        elif name in ("load_file", "safetensors.torch.load_file"):
            _probe(change, source, call, "loaded_file", name)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "load_from_checkpoint":
            _probe(change, source, call, "loaded_model", source.of(call.func))
    for call in _made_for_shards(source):
        _probe(change, source, call, "made", code.dotted(call.func))


def _probe(change, source, call, function, *before):
    """The call becomes one of a function of this module, with the call's number and what is called before its arguments."""
    _calls.append((change, source, call))
    words = ", ".join([str(len(_calls) - 1), *before])
    seen = '__import__("sys").modules["_tonnage_changes.map_location"].%s(%s, ' % (function, words)
    line, column = source.start(call)
    end_line, end_column = source.end(call.func)
    rest = source.lines[end_line - 1][end_column:]
    change.trial_edits(source).spans.append((line, column, end_line, end_column + len(rest) - len(rest.lstrip(" ")) + 1, seen))


# ---- tensors that are made to be read into ----


def _made_for_shards(source):
    """Calls that make tensors, in what is assigned to names that torch.distributed.checkpoint is handed."""
    found = []
    for scope, handed in code.readers_of_shards(source):
        names, bound = code.names(handed), _assignments(source, scope)
        for _ in range(len(bound)):
            names |= {name for target, value in bound if target in names for name in code.names(value)}
        for value in [handed] + [value for target, value in bound if target in names]:
            found += [call for call in ast.walk(value) if isinstance(call, ast.Call) and _makes(call) and call not in found]
    return found


def _assignments(source, scope):
    """(name, value) of what is bound in a scope: `weights = ...`, `state["model"] = ...`."""
    found = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and source.scope(node) is scope:
            target = node.targets[0]
            target = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(target, ast.Name):
                found.append((target.id, node.value))
    return found


def _makes(call):
    owner, _, name = (code.dotted(call.func) or "").rpartition(".")
    return owner == "torch" and name in _MAKERS and bool(call.args)


# ---- called by the program in the place of what it says ----


def loaded(number, f, map_location=None, *args, **kwargs):
    """In the place of torch.load()."""
    import torch

    where = f.tell() if hasattr(f, "tell") else None
    asked = set()
    value = None
    if not _is_host(map_location):
        try:
            value = torch.load(f, _watching(torch, map_location, asked), *args, **kwargs)
        except Exception:
            pass  # a file that is not there: the program's own call says so
    if isinstance(value, dict):
        if _is_device(asked):
            _calls[number][0].guarded(_note, None)(number, "map_location", _HOW % 'torch.load(..., map_location="cpu")')
        return value
    if where is not None:
        f.seek(where)
    return torch.load(f, map_location, *args, **kwargs)


def loaded_file(number, load, filename, device="cpu", **kwargs):
    """In the place of safetensors' load_file()."""
    if not _is_device([str(device)] if not isinstance(device, int) else ["cuda"]):
        return load(filename, device=device, **kwargs)
    _calls[number][0].guarded(_note, None)(number, "device", _HOW % 'load_file(..., device="cpu")')
    return load(filename, device="cpu", **kwargs)


def loaded_model(number, load, path, *args, **kwargs):
    """In the place of load_from_checkpoint()."""
    import torch

    asked = set()
    wished = args[0] if args else kwargs.pop("map_location", None)
    if _is_host(wished):
        return load(path, wished, *args[1:], **kwargs)
    value = load(path, _watching(torch, wished, asked), *args[1:], **kwargs)
    if _is_device(asked):
        _calls[number][0].guarded(_note, None)(number, "map_location", _HOW_MODEL)
    return value


def made(number, make, *args, **kwargs):
    """In the place of what makes a tensor."""
    import torch

    device = kwargs.get("device")
    if device is None:
        device = args[0].device if type(args[0]) in (torch.Tensor, torch.nn.Parameter) else "cpu"
    if not _is_device([str(device)]):
        return make(*args, **kwargs)
    _calls[number][0].guarded(_note, None)(number, "device", _HOW_MADE, "the tensors are made on the host", None)
    return make(*args, **{**kwargs, "device": "cpu"})


def _is_host(map_location):
    return str(map_location) == "cpu"


def _is_device(places):
    return any(place.startswith("cuda") for place in places)


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


def _note(number, argument, how, what="the checkpoint is loaded on the host", position=1):
    change, source, call = _calls[number]
    if number not in _noted:
        _noted.add(number)
        change.note(wrap.place_of(source, call), what)
        arguments.say(change, how)
        code.set_keyword(change.edits(source), call, argument, '"cpu"', position=position)
    change.effect()
