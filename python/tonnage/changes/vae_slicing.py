# SPDX-License-Identifier: Apache-2.0
"""The autoencoder of a pipeline of diffusers decodes one picture of a batch at a time, by its own switch.

In the text: `pipe = ...Pipeline(...)` or `...Pipeline.from_pretrained(...)` in a file that imports diffusers.
"""

import ast

from . import arguments, code, wrap

_HOW = "Call `%s.vae.enable_slicing()`: the autoencoder decodes one picture of the batch at a time."
_SWITCHES = ("enable_slicing", "enable_vae_slicing")


def edit(change, source):
    """Switches it on behind each pipeline that one file makes."""
    if not _imports_diffusers(source) or code.calls(source, *_SWITCHES):
        return
    for statement in source.all(ast.Assign):
        if not (len(statement.targets) == 1 and isinstance(statement.value, ast.Call)):
            continue
        target, maker = code.dotted(statement.targets[0]), code.dotted(statement.value.func)
        if target is None or maker is None or not any("Pipeline" in part for part in maker.split(".")):
            continue
        change.edits(source).insert_after(statement, "%s.vae.enable_slicing()" % target)
        change.note(wrap.place_of(source, statement), "%s decodes one picture at a time" % target)
        change.effect()
        arguments.say(change, _HOW % target)


def _imports_diffusers(source):
    if not source.says("diffusers"):
        return False
    names = [node.module or "" for node in source.all(ast.ImportFrom)]
    names += [name.name for node in source.all(ast.Import) for name in node.names]
    return any(name.partition(".")[0] == "diffusers" for name in names)
