# SPDX-License-Identifier: Apache-2.0
"""What one training leaves for the next is let go of: models and optimizers that a list, a dictionary or a study keeps go to the CPU, frames
of a caught exception are cleared, and a cache (functools.lru_cache) is emptied before the next training.

In the text: values that are kept, except blocks, loops that call a cached function. Each has a probe; the patch has those that did something.
"""

import ast

from . import arguments, code, source, wrap

_LEAST = 1 << 20
_DEEPEST = 4
_CACHES = ("lru_cache", "cache")
_HELPER = '''\
def moved_to_cpu(kept):
    """Models and optimizers in it are moved to the CPU, where they stand."""
    if isinstance(kept, torch.nn.Module):
        kept.cpu()
    elif isinstance(kept, torch.optim.Optimizer):
        for state in kept.state.values():
            state.update((name, value.cpu()) for name, value in state.items() if torch.is_tensor(value))
    elif isinstance(kept, dict):
        for value in kept.values():
            moved_to_cpu(value)
    elif isinstance(kept, (list, tuple)):
        for value in kept:
            moved_to_cpu(value)
    return kept


'''
_COPIER = '''\
def copied_to_cpu(kept):
    """A copy of a model on the CPU, without its gradients."""
    made = {id(one): torch.nn.Parameter(one.detach().cpu(), one.requires_grad) for one in kept.parameters()}
    made.update((id(one), one.detach().cpu()) for one in kept.buffers())
    return copy.deepcopy(kept, made)


'''
_names = {}
_probes = []  # (change, source, node) of each


def edit(change, text):
    """Looks at one file."""
    for node in _kept(text):
        _probe(change, text, node, "kept(%d, {})")
    for call in _appends(text):
        _statement(change, text, text.statement(call), "added_to(%%d, %s)" % text.of(call.func.value), call)
    for handler in text.all(ast.ExceptHandler):
        if not _only_raises(handler):
            _statement(change, text, handler.body[0], "caught(%d)", handler)
    for loop, call in _loops_over_caches(text):
        _statement(change, text, loop.body[0], "emptied(%%d, %s)" % text.of(call.func), call)


def _kept(text):
    for node in text.all(ast.Assign, ast.Expr):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            found = node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            call = node.value
            place = {"append": 0, "set_user_attr": 1}.get(call.func.attr)
            found = call.args[place] if place is not None and len(call.args) == place + 1 and not call.keywords else None
        else:
            found = None
        if isinstance(found, (ast.Name, ast.Attribute, ast.Dict, ast.Tuple, ast.List)):
            yield found


def _appends(text):
    """To a list of a name: what it holds already may be models of earlier trainings, which were kept before they were trained."""
    for call in [node.value for node in text.all(ast.Expr)]:
        if isinstance(call, ast.Call) and code.last(call.func) == "append" and len(call.args) == 1 and isinstance(call.func.value, ast.Name):
            yield call


def _only_raises(handler):
    return all(isinstance(statement, (ast.Raise, ast.Pass)) for statement in handler.body)


def _loops_over_caches(text):
    cached = {node.name for node in text.all(ast.FunctionDef) if any(
        code.last(one.func if isinstance(one, ast.Call) else one) in _CACHES for one in node.decorator_list)}
    done = set()
    for call in code.calls(text, *cached):
        loop = text.above(call, *code.LOOPS)
        if loop is not None and (loop, code.last(call.func)) not in done and isinstance(call.func, ast.Name):
            done.add((loop, code.last(call.func)))
            yield loop, call


_CALL = '__import__("sys").modules["_tonnage_changes.release_trainings"].'


def _probe(change, text, node, call):
    _probes.append((change, text, node))
    change.trial_edits(text).replace(node, (_CALL + call % (len(_probes) - 1)).format(text.of(node)))


def _statement(change, text, before, call, node):
    _probes.append((change, text, node))
    try:
        change.trial_edits(text).insert_before(before, _CALL + call % (len(_probes) - 1))
    except source.Conflict:
        pass  # on one line with others


# ---- called by the program ----


def kept(number, value):
    """In the place of a value that the program keeps."""
    change = _probes[number][0]
    return change.guarded(_move, value)(change, number, value)


def _make_helpers(torch):
    import copy

    if not _names:
        _names.update(torch=torch, copy=copy)
        exec(_HELPER + _COPIER, _names)


def added_to(number, container):
    """Before something is added to a list."""
    change = _probes[number][0]
    change.guarded(_move_earlier)(change, number, container)


def _move_earlier(change, number, container):
    import torch

    models = [one for one in container if isinstance(one, torch.nn.Module)] if isinstance(container, list) else []
    if not _has_trained(torch, models, 0):
        return
    _make_helpers(torch)
    _names["moved_to_cpu"](container)
    _, text, call = _probes[number]
    if _note(change, number, "the models of %s go to the CPU" % text.of(call.func.value)):
        edits = change.edits(text)
        code.need_import(edits, "torch")
        if not any(_HELPER.partition("\n")[0] in rows for rows in edits.before.values()):
            wrap.insert_helper(edits, _HELPER)
        edits.insert_before(text.statement(call), "moved_to_cpu(%s)" % text.of(call.func.value))
        arguments.say(change, "Keep models of earlier trainings on the CPU (model.cpu()).")


def _move(change, number, value):
    import torch

    if not _has_trained(torch, value, 0):
        return value
    _, text, node = _probes[number]
    copies = _is_read_later(text, node)
    if copies and not isinstance(value, torch.nn.Module):
        return value  # what the program goes on to use stays where it is
    _make_helpers(torch)
    helper, source_of_it = ("copied_to_cpu", _COPIER) if copies else ("moved_to_cpu", _HELPER)
    moved = _names[helper](value)
    if _note(change, number, "%s goes to the CPU" % text.of(node)):
        edits = change.edits(text)
        for name in ("copy", "torch") if copies else ("torch",):
            code.need_import(edits, name)
        if not any(source_of_it.partition("\n")[0] in rows for rows in edits.before.values()):
            wrap.insert_helper(edits, source_of_it)
        edits.replace(node, "%s(%s)" % (helper, text.of(node)))
        arguments.say(change, "Keep models and optimizers of earlier trainings on the CPU (model.cpu()).")
    return moved


def _is_read_later(text, node):
    """True where the function goes on to read a name of what is kept."""
    names, last, scope = code.names(node), text.statement(node).end_lineno, text.scope(node)
    return any(isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load) and one.lineno > last and text.scope(one) is scope
               for one in ast.walk(scope))


def _has_trained(torch, value, depth):
    """A model that was trained, or its optimizer, is in it and on a device."""
    from _tonnage_guest import trainings

    if isinstance(value, torch.nn.Module):
        return any(parameter.is_cuda and trainings.has_trained(parameter) for parameter in value.parameters())
    if isinstance(value, torch.optim.Optimizer):
        return any(trainings.has_trained(one) for group in value.param_groups for one in group["params"])
    if depth < _DEEPEST and isinstance(value, dict):
        return any(_has_trained(torch, one, depth + 1) for one in tuple(value.values()))
    return depth < _DEEPEST and isinstance(value, (list, tuple)) and any(_has_trained(torch, one, depth + 1) for one in value)


def caught(number):
    """At the top of an except block."""
    change = _probes[number][0]
    change.guarded(_clear)(change, number)


def _clear(change, number):
    import sys
    import traceback

    _, text, handler = _probes[number]
    before = _allocated()
    if before is None:
        return
    error = sys.exc_info()[1]
    traceback.clear_frames(error.__traceback__)
    if before - _allocated() >= _LEAST and _note(change, number, "the frames of the exception are cleared"):
        edits = change.edits(text)
        code.need_import(edits, "traceback")
        name = handler.name
        if name is None:
            code.need_import(edits, "sys")
        edits.insert_before(handler.body[0], "traceback.clear_frames(%s)" % ("%s.__traceback__" % name if name else "sys.exc_info()[2]"))
        arguments.say(change, "Clear the frames of a caught exception: traceback.clear_frames(error.__traceback__).")


def emptied(number, function):
    """At the top of a loop that calls a cached function."""
    change = _probes[number][0]
    change.guarded(_empty)(change, number, function)


def _empty(change, number, function):
    _, text, call = _probes[number]
    info = function.cache_info()
    if _allocated() is None or not info.currsize:
        return
    if info.hits:
        change.cannot("%s is asked again for what it keeps" % text.of(call.func))
        return
    function.cache_clear()
    if _note(change, number, "the cache of %s is emptied" % text.of(call.func)):
        loop = text.above(call, *code.LOOPS)
        change.edits(text).insert_before(loop.body[0], "%s.cache_clear()" % text.of(call.func))
        arguments.say(change, "Empty the cache before the next training: %s.cache_clear()." % text.of(call.func))


def _allocated():
    import sys

    torch = sys.modules.get("torch")
    return torch.cuda.memory_allocated() if torch is not None and torch.cuda.is_initialized() else None


def _note(change, number, what):
    """The probe did something; True the first time."""
    _, text, node = _probes[number]
    change.effect()
    place = wrap.place_of(text, node)
    if place in [{name: row[name] for name in place} for row in change.places]:
        return False
    change.note(place, what)
    return True
