# SPDX-License-Identifier: Apache-2.0
"""No graph for a result that no backward pass uses.

The value says where: `file:line`, parted by "; ", as the unchanged program has shown them (survey.py). The statement goes into `with
torch.no_grad():`.
"""

from _tonnage_guest import origin

from . import arguments, code

_HOW = ("Wrap the call in `with torch.no_grad():`: in the steps that were run no backward pass used its result. Where a later step does, "
        "it needs the graph.")
_TRAINS = ("backward", "manual_backward", "train", "step")


def edit(change, source):
    """Wraps the statements of one file."""
    for place in (change.value or "").split("; "):
        file, line = origin.from_short(place)
        if file == source.path:
            _wrap(change, source, line)


def _wrap(change, source, line):
    calls = source.calls_at(line)
    statement = source.statement(calls[-1]) if calls else None
    if statement is None or code.has_call(statement, *_TRAINS):
        return
    edits = change.edits(source)
    edits.wrap([statement], "with torch.no_grad():")
    code.need_import(edits, "torch")
    scope = source.scope(statement)
    change.note({"file": source.path, "line": line, "function": getattr(scope, "name", "<module>")},
                "runs under no_grad: no backward pass uses what it makes")
    change.effect()
    arguments.say(change, _HOW)
