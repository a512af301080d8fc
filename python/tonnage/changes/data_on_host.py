# SPDX-License-Identifier: Apache-2.0
"""A data set that the program puts on the device before its loop stays on the host; each batch moves by itself.

In the text: a name that is bound outside the loops by an expression with `.cuda()` or `.to(...)`, and that loops
only index (or that goes into a TensorDataset); or samples that a Dataset prepares when it is made, `self.samples =
[prepare(x) for x in ...]`, where they are seen to lie on the device.
"""

import ast

from . import arguments, code, kept, wrap

_HOW = "Keep the data set on the host and move each batch: `data[chosen.cpu()].cuda()`."
_HOW_SAMPLES = "Keep the prepared samples on the host, and move each as it is asked for."
_samples = {}  # number of a probe -> (source, the places that read its samples)
_moved = set()  # numbers of probes whose samples were seen on the device


def edit(change, source):
    """Finds such data in one file."""
    done = False
    for statement in source.all(ast.Assign) if not source.before_brackets.isdisjoint(("cuda", "to")) else ():
        if len(statement.targets) == 1 and source.above(
                statement, *code.LOOPS) is None:
            name = statement.targets[0].id if isinstance(statement.targets[0], ast.Name) else None
            moves = _moves(statement.value)
            if name is not None and len(moves) == 1:
                done = _keep(change, source, statement, name, moves[0]) or done
    if done:
        arguments.say(change, _HOW)
    for node in source.all(ast.ClassDef) if "__getitem__" in source.before_brackets else ():
        if any(getattr(part, "name", "") == "__getitem__" for part in node.body):
            _watch_samples(change, source, node)


def _watch_samples(change, source, dataset):
    """Lists of samples that an object of the class holds: what is put there, and what reads it."""
    for statement in ast.walk(dataset):
        name = code.dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else None
        made = [part for part in ast.walk(statement.value) if isinstance(part, ast.ListComp)] if name else []
        if len(made) != 1 or not name.startswith("self."):
            continue
        reads = [node for node in ast.walk(dataset) if isinstance(node, ast.Subscript) and code.dotted(node.value) == name]
        number = kept.probe(change, source, made[0].elt, "data_on_host")
        _samples[number] = (source, reads)
        back = '__import__("sys").modules["_tonnage_changes.data_on_host"].back(%d, %s)'
        for read in reads:
            change.trial_edits(source).replace(read, back % (number, source.of(read)))


def treat(change, number, value):
    """Called with each sample that is put into a list; returns what shall be kept."""
    import torch

    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return value
    if number not in _moved:
        _moved.add(number)
        source, reads = _samples[number]
        arguments.say(change, _HOW_SAMPLES)
        for read in reads:
            change.edits(source).insert(*source.end(read), ".cuda()")
    kept.effective(change, number, "%s.cpu()", "kept on the host")
    return value.cpu()


def back(number, value):
    """Called by the program with each sample that it reads."""
    return value.cuda() if number in _moved else value


def _moves(node):
    """Calls `x.cuda()` and `x.to(somewhere)` in an expression, where x is no module's constructor."""
    found = []
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            to = call.func.attr == "to" and len(call.args) == 1 and _is_device(call.args[0])
            if call.func.attr == "cuda" or to:
                found.append(call)
    return found


def _is_device(node):
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    return "device" in (code.dotted(node) or "").lower()


def _keep(change, source, statement, name, move):
    uses = _uses(source, statement, name)
    if not uses:
        return False
    edits, back = change.edits(source), source.of(move)[len(source.of(move.func.value)):]
    line, column = source.end(move.func.value)
    end_line, end_column = source.end(move)
    edits.spans.append((line, column, end_line, end_column, ""))
    for use in uses:
        index = use.slice
        if not _is_host_index(index):
            start, end = source.start(index), source.end(index)
            plain = isinstance(index, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            edits.insert(*start, "" if plain else "(")
            edits.insert(*end, ".cpu()" if plain else ").cpu()")
        edits.insert(*source.end(use), back)
    change.note(wrap.place_of(source, statement), "%s stays on the host" % name)
    change.effect()
    return True


def _uses(source, statement, name):
    """The subscripts that read the name, if there is nothing else that does but .shape and len()."""
    uses = []
    for node in ast.walk(source.scope(statement)):
        if isinstance(node, ast.Name) and node.id == name and node is not statement.targets[0]:
            parent = source.parents.get(node)
            if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
                uses.append(parent)
            elif not (isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim", "dtype")) and not (
                    isinstance(parent, ast.Call) and code.last(parent.func) == "len"):
                return []
    return [use for use in uses if source.above(use, *code.LOOPS) is not None] if uses else []


def _is_host_index(index):
    return isinstance(index, (ast.Slice, ast.Constant)) or (
        isinstance(index, ast.Tuple) and all(_is_host_index(part) for part in index.elts))
