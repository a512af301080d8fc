# SPDX-License-Identifier: Apache-2.0
"""Inference with the weights of linear layers in one byte each, and one scale a row; they are expanded as they are used.

Layers are converted one by one, on the device, as the model moves there. Subclasses of Linear stay: their owners may
read their weights.
"""

import ast

from . import arguments, code, hooks, rewrite, wrap
from .source import Conflict

_HOW = ("Keep the weights of linear layers in one byte each, converted as the model moves to the device (load_in_8bit of "
        "bitsandbytes is the same idea, with kernels of its own).")
_HELPER = '''\
class Int8Linear(torch.nn.Module):
    """A linear layer with weights of one byte and one scale for each row, expanded as they are used."""
    def __init__(self, linear, device):
        super().__init__()
        weight = linear.weight.detach().to(device)
        scale = weight.abs().amax(1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype), self.bias)


def in_int8(model, device):
    """The model with its linear layers' weights in one byte each, those on the device already."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is torch.nn.Linear and child.weight.is_floating_point():
                setattr(module, name, Int8Linear(child, device))
    return model


'''


def install(change):
    """Converts each model that the program moves to a device."""
    names, done = {}, set()

    def moved(module, frame, device):
        import torch

        if device is None or device.type != "cuda" or id(module) in done or arguments.is_managed(frame):
            return
        count = sum(type(part) is torch.nn.Linear for part in module.modules())
        if not names:
            names["torch"] = torch
            exec(_HELPER, names)
        if count == 0:
            return
        names["in_int8"](module, device)
        done.update(id(part) for part in module.modules())
        place = hooks.place(frame)
        change.note(place, "the %d linear layers of %s are converted as they move" % (count, type(module).__name__))
        change.effect()
        arguments.say(change, _HOW)
        _patch(change, place)

    hooks.on_moved(change.guarded(moved))


def _patch(change, place):
    """`x.cuda()` becomes `in_int8(x, "cuda").cuda()`, with the helper behind the imports."""
    text = rewrite.source_at(place)
    for call in text.calls_at(place["line"]) if text is not None else ():
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("cuda", "to"):
            continue
        device = call.args[0] if call.args else call.keywords[0].value if call.keywords else None
        where = text.of(device) if device is not None else '"cuda"'
        edits, name, layer = change.edits(text), code.free_name(text, "in_int8"), code.free_name(text, "Int8Linear")
        try:
            edits.replace(call.func.value, "%s(%s, %s)" % (name, text.of(call.func.value), where))
            if len(edits.spans) == 1:
                wrap.insert_helper(edits, _HELPER.replace("in_int8", name).replace("Int8Linear", layer))
        except Conflict:
            change.patches.pop(text.path, None)
        return
