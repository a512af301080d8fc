# SPDX-License-Identifier: Apache-2.0
"""A language model of transformers computes the logits of the last token alone, where the program reads no others.

In the text: `outputs = model(...)`, of which only `outputs.logits[:, -1]` and what has nothing to do with logits are read. Whether the model
takes the argument is seen in the trial.
"""

import ast

from . import arguments, code, wrap

_HOW = "Call the model with logits_to_keep=1: the program reads the logits of the last token only."
_OF_ALL = ("logits", "loss")  # what is made of the logits of all tokens


def edit(change, source):
    """Gives the argument to the calls of one file whose logits are read so."""
    seen = set()
    for node in source.all(ast.Subscript) if source.says(".logits") else ():
        if not _is_last(node):
            continue
        made = node.value.value
        calls = [made] if isinstance(made, ast.Call) else _makers(source, made) if isinstance(made, ast.Name) else []
        for call in calls:
            if call not in seen and _takes(call):
                seen.add(call)
                code.set_keyword(change.edits(source), call, "logits_to_keep", "1")
                change.note(wrap.place_of(source, call), "logits of the last token only")
                change.effect()
                arguments.say(change, _HOW)


def _is_last(node):
    """x.logits[:, -1] or x.logits[:, -1, ...]"""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "logits"):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if len(parts) < 2 or not isinstance(parts[0], ast.Slice) or parts[0].lower or parts[0].upper:
        return False
    return isinstance(parts[1], ast.UnaryOp) and isinstance(parts[1].op, ast.USub) and getattr(parts[1].operand, "value", 0) == 1


def _makers(source, name):
    """The calls that the name is bound to in its scope; none where something else of the logits is read, or the name is bound otherwise."""
    calls = []
    for node in ast.walk(source.scope(name)):
        if isinstance(node, ast.Name) and node.id == name.id:
            above = source.parents.get(node)
            if isinstance(node.ctx, ast.Store):
                if not (isinstance(above, ast.Assign) and isinstance(above.value, ast.Call)):
                    return []
                calls.append(above.value)
            elif not isinstance(above, ast.Attribute) or (above.attr in _OF_ALL and not _is_last(source.parents.get(above))):
                return []
    return calls


def _takes(call):
    """A call as of a language model in inference."""
    words = {word.arg for word in call.keywords}
    return None not in words and not words & {"labels", "logits_to_keep"} and code.last(call.func) != "generate"
