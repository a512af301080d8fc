# SPDX-License-Identifier: Apache-2.0
"""Models in another floating type, converted as they are moved to a device."""

import ast

from . import arguments, code, hooks, rewrite, wrap
from .source import Conflict

_HELPER = '''\
def in_%(short)s(model):
    """The model with weights of %(type)s; floating inputs are converted, and what it returns for them goes back."""
    def convert(value, dtype):
        if torch.is_tensor(value):
            return value.to(dtype) if value.is_floating_point() else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(convert(v, dtype) for v in value)
        if type(value) is dict:
            return {k: convert(v, dtype) for k, v in value.items()}
        return value

    def is_floating(values):
        return any(torch.is_tensor(v) and v.is_floating_point() for v in values)

    def before(module, args, kwargs):
        return convert(args, %(type)s), convert(kwargs, %(type)s)

    def after(module, args, kwargs, result):
        return convert(result, torch.float32) if is_floating(list(args) + list(kwargs.values())) else None

    model.register_forward_pre_hook(before, with_kwargs=True)
    model.register_forward_hook(after, with_kwargs=True)
    return model.to(%(type)s)


'''


def install(change, kind, how):
    """Converts each model that the program moves to a device, before it is moved."""
    done = set()

    def moved(module, frame, device):
        import torch

        if device is None or id(module) in done or arguments.is_managed(frame) == "lightning":
            return
        if not any(p.is_floating_point() and p.dtype != getattr(torch, kind[6:]) for p in module.parameters()):
            return
        done.update(id(part) for part in module.modules())
        names = {"torch": torch}
        exec(_helper(kind), names)
        names["in_" + kind[6:]](module)
        place = hooks.place(frame)
        change.note(place, "%s is converted to %s before it is moved" % (type(module).__name__, kind))
        change.effect()
        arguments.say(change, how)
        _patch(change, place, kind)

    hooks.on_moved(change.guarded(moved))
    arguments.lightning(change, {"precision": {"torch.bfloat16": "bf16-true", "torch.float16": "16-true"}[kind]})


def _helper(kind):
    return _HELPER % {"type": kind, "short": kind[6:]}


def _patch(change, place, kind):
    """`x.cuda()` becomes `in_bfloat16(x).cuda()`, with the helper behind the imports."""
    text = rewrite.source_at(place)
    for call in text.calls_at(place["line"]) if text is not None else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to"):
            edits = change.edits(text)
            name = code.free_name(text, "in_" + kind[6:])
            try:
                edits.replace(call.func.value, "%s(%s)" % (name, text.of(call.func.value)))
                if len(edits.spans) == 1:
                    wrap.insert_helper(edits, _helper(kind).replace("in_" + kind[6:], name))
            except Conflict:
                change.patches.pop(text.path, None)
            return
