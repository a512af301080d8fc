# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: forward and loss under torch.autocast; float16 with a gradient scaler as well."""

import ast
import os

from . import arguments, code, wrap

_TYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_HOW = "Run the forward pass and the loss under `with %s:`."


def edit(change, source):
    """Wraps the steps of one file; where they stand under an autocast that is switched off, it is switched on."""
    kind = _TYPES.get(change.value or "bf16")
    if kind is None:
        return
    present = code.calls(source, "autocast")
    if present:
        _switch_on(change, source, present, kind)
        return
    header = 'torch.autocast("%s", dtype=%s)' % (_device(source), kind)
    steps = wrap.forward(change, source, "with %s:" % header, "run under autocast", _HOW % header,
                         hoists=kind != _TYPES["fp16"])
    if kind == _TYPES["fp16"]:
        for step in steps:
            if step.scaler is None:
                _scale(change, source, step)


def _switch_on(change, source, present, kind):
    scalers = code.calls(source, "GradScaler") if kind == _TYPES["fp16"] else []
    for call in present + scalers:
        word = code.keyword(call, "enabled")
        if word is None or getattr(word.value, "value", None) is True:
            continue
        change.edits(source).replace(word.value, "True")
        if call in present and code.keyword(call, "dtype") is not None:
            change.edits(source).replace(code.keyword(call, "dtype").value, kind)
        change.note(wrap.place_of(source, call), "%s is switched on (it was enabled=%s)" % (
            code.last(call.func), source.of(word.value)))
        change.effect()
        arguments.say(change, "Switch the program's own autocast on: %s." % source.of(word.value))


def _device(source):
    """A run with a virtual GPU is about that, however the program names it; elsewhere what the text names."""
    text = source.text
    if os.environ.get("TONNAGE_GPU", "virtual") == "virtual" or "cuda" in text or "accelerator" in text:
        return "cuda"
    return "cpu" if '"cpu"' in text else "cuda"


def _scale(change, source, step):
    """A GradScaler for a step that has none."""
    edits, name = change.edits(source), code.free_name(source, "scaler")
    updates = [statement for statement in step.block[step.index + 1:] if _is_update(statement)]
    if not updates or step.loss is None or step.loss is not step.call.func.value or step.loop is None:
        return
    edits.insert_before(step.loop, '%s = torch.amp.GradScaler("cuda")' % name)
    edits.replace(step.loss, "%s.scale(%s)" % (name, source.of(step.loss)))
    call = updates[0].value
    edits.replace(call, "%s.step(%s)" % (name, ", ".join([code.dotted(call.func.value)] + [
        source.of(argument) for argument in call.args])))
    edits.insert_after(updates[0], "%s.update()" % name)
    arguments.say(change, "float16 gradients need a gradient scaler: torch.amp.GradScaler.")


def _is_update(statement):
    call = code.method_statement(statement, "step")
    name = code.dotted(call.func.value) if call is not None and isinstance(call.func, ast.Attribute) else None
    return name is not None and "sched" not in name


def install(change):
    """Trainers have an argument for it."""
    value = change.value or "bf16"
    if value not in _TYPES:
        change.cannot("knows bf16 and fp16 only")
        return
    arguments.hugging_face(change, {value: True})
    arguments.lightning(change, {"precision": value[2:] + "-mixed" if value == "fp16" else "bf16-mixed"})
