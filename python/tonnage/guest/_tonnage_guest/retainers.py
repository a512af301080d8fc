# SPDX-License-Identifier: Apache-2.0
"""What keeps tensors that pile up: a list, dict, set or deque that a variable of the program, or an attribute of one of its
objects, names; and the line that adds to it, found in the program's text.

Looked for once memory is known to grow, and at an out-of-memory. Only names that stand on the stack are followed; where requests are sent to the
program also those of its modules, its objects and its functions' closures, since between two requests no frame of it is on a stack.
Where no collection holds them itself, there also those that hold objects which do (a session's cache of keys and values).
"""

import ast
import collections
import gc
import linecache
import sys
import types

from . import cellnames, frames, holds
from .state import settings, state

_KINDS = (list, dict, set, collections.deque)
_ADDS = ("append", "extend", "add", "insert", "appendleft", "update", "setdefault")
_MOST_THINGS = 200000  # that are looked at, in all
_DEPTH = 3
_LEAST_TENSORS = 4
_LEAST_BYTES = 4 << 20
_A_GRAPH = 64 << 20  # what a kept result of autograd counts for: it keeps what made it
_LONGEST_SOURCE = 1 << 20


def look(frame):
    """Notes in state.kept what keeps most, if anything does; `frame` is the innermost to look at."""
    try:
        _look(frame)
    except Exception:
        return  # an object of the program's answered in its own way; what is known without is worth more


def _look(frame):
    best = _most(frame, False)
    if best is None and settings.requests:
        best = _most(frame, True)
    if best is not None:
        _, name, owner, file, size, count = best
        state.kept = {"name": name, "bytes": size, "tensors": count, "at": _line_of(name, owner, file, frame)}


def _most(frame, through_objects):
    """What keeps most: (weight, name, owner, file, bytes, tensors), or None."""
    left = [_MOST_THINGS]
    seen = set()
    best = None
    for name, value, owner, file in _candidates(frame):
        if id(value) in seen or left[0] <= 0:
            continue
        seen.add(id(value))
        size, count, graphs = _held(value, left, through_objects)
        if count >= _LEAST_TENSORS and max(size, graphs * _A_GRAPH) >= _LEAST_BYTES:
            weight = size + graphs * _A_GRAPH
            if best is None or weight > best[0]:
                best = (weight, name, owner, file, size, count)
    return best


def _candidates(frame):
    yield from _named(frame)
    if settings.requests:
        yield from _of_modules()
        yield from _of_objects()


def _named(frame):
    """(name, value, owner, file) of every collection that a user's frame names, or that belongs to an object of a user's
    class which a trainer holds."""
    while frame is not None:
        kind = frames.kind(frame.f_code, frame.f_globals)
        if kind in (frames.USER, frames.LIBRARY):
            for name, value in tuple(frame.f_locals.items()):
                if kind is frames.USER and type(value) in _KINDS:
                    yield name, value, None, frames.file_of(frame)
                elif not name.startswith("__") and (kind is frames.USER or _is_of_user(type(value))):
                    name = name if kind is frames.USER else "self"
                    for attribute, inner in _attributes(value):
                        yield "%s.%s" % (name, attribute), inner, value, frames.file_of(frame)
        frame = frame.f_back


def _of_modules():
    """The same for names of the program's modules, and for the `state` of an application of Starlette."""
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not frames.is_users(file):
            continue
        for name, value in tuple(vars(module).items()):
            if type(value) in _KINDS and not name.startswith("__"):
                yield name, value, None, frames.absolute(file)
            elif not isinstance(value, (type, types.ModuleType)):
                kept = getattr(getattr(value, "state", None), "_state", None)
                for attribute, inner in tuple(kept.items()) if type(kept) is dict else ():
                    if type(inner) in _KINDS:
                        yield "%s.state.%s" % (name, attribute), inner, None, frames.absolute(file)


def _of_objects():
    """The same for attributes of the program's objects and classes, and for what its functions close over."""
    for thing in gc.get_objects():
        kind = type(thing)
        if kind is types.FunctionType:
            if thing.__closure__ and frames.is_users(thing.__code__.co_filename):
                for name, value in zip(thing.__code__.co_freevars, map(_content, thing.__closure__)):
                    if type(value) in _KINDS:
                        yield name, value, None, frames.absolute(thing.__code__.co_filename)
        elif kind is type:
            if _is_of_user(thing):
                for name, value in tuple(vars(thing).items()):
                    if type(value) in _KINDS:
                        yield "%s.%s" % (thing.__name__, name), value, None, _file_of(thing)
        elif _is_of_user(kind):
            for name, value in _attributes(thing):
                yield "%s.%s" % (kind.__name__, name), value, thing, _file_of(kind)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None  # nothing is in it yet


def _file_of(cls):
    return frames.absolute(sys.modules[cls.__module__].__file__)


def _is_of_user(cls):
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file is not None and frames.is_users(file)


def _attributes(value):
    if isinstance(value, type) or (type(value).__module__ or "").partition(".")[0] in ("torch", "builtins", "types"):
        return []
    try:
        fields = vars(value)
    except TypeError:
        return []
    return [(name, inner) for name, inner in tuple(fields.items()) if type(inner) in _KINDS and name[:1] != "_"]


def _held(collection, left, through_objects):
    """(bytes, tensors, how many of them keep a graph) of the device's tensors in a collection, and of objects in it where asked."""
    tensor_class, storages, count, graphs = state.torch.Tensor, {}, 0, 0
    stack = [(collection, 0)]
    met = set()  # objects that were looked into: they may hold each other
    while stack and left[0] > 0:
        thing, depth = stack.pop()
        left[0] -= 1
        if isinstance(thing, tensor_class):
            rows = [] if isinstance(thing, state.torch.nn.Parameter) else holds.rows_of("", thing, "", whole=True)
            storages.update((address, size) for _, address, size, _ in rows)
            count += bool(rows)
            graphs += bool(rows) and thing.grad_fn is not None
        elif depth < _DEPTH and isinstance(thing, dict):
            stack.extend((inner, depth + 1) for inner in tuple(thing.values()))
        elif depth < _DEPTH and isinstance(thing, (list, tuple, set, collections.deque)):
            stack.extend((inner, depth + 1) for inner in tuple(thing))
        elif through_objects and id(thing) not in met and _is_plain(thing):
            met.add(id(thing))
            stack.extend((inner, depth) for inner in tuple(vars(thing).values()))
    return sum(storages.values()), count, graphs


def _is_plain(thing):
    """An object that holds what it holds for itself: no model, no optimizer, nothing of the interpreter's."""
    torch = state.torch
    return (isinstance(getattr(thing, "__dict__", None), dict) and (type(thing).__module__ or "").partition(".")[0] not in ("torch", "builtins", "types")
            and not isinstance(thing, (type, torch.nn.Module, torch.optim.Optimizer)))  # fmt: skip


def _line_of(name, owner, file, frame):
    """Where something is added to it: the first such line of that file, or of the owner's class, in a function that runs now where there
    is one; or None."""
    module = sys.modules.get(type(owner).__module__) if owner is not None else None
    files = [frames.absolute(module.__file__)] if getattr(module, "__file__", None) else []
    files.append(file)
    last = name.rpartition(".")[2]
    for file in files:
        found = _adding_line(file, last, _running(frame, file))
        if found is not None:
            file, found = cellnames.place_of(file, found) or (file, found)
            return {"file": file, "line": found, "function": None}
    return None


def _running(frame, file):
    """The first lines of the functions of a file that run now; None stands for the module's own code."""
    found = set()
    while frame is not None:
        code = frame.f_code
        if frames.absolute(code.co_filename) == file:
            found.add(None if code.co_name == "<module>" else code.co_firstlineno)
        frame = frame.f_back
    return found


def _adding_line(file, name, running=()):
    lines = _lines(file, lambda node: _adds(node, name))
    return min((line for line, function in lines if function in running), default=None) or min((line for line, _ in lines), default=None)


def _adds(node, name):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
        return _is_named(node.func.value, name)
    if isinstance(node, ast.AugAssign):
        return _is_named(node.target, name)
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Subscript) and _is_named(target.value, name) for target in node.targets)


def _is_named(node, name):
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def line_that_binds(file, name, code=None):
    """Where a file adds to a name, else binds it; the line of a function's code where it is the name's own. A place, or None."""
    last = name.rpartition(".")[2]
    if code is not None and code.co_name == last:
        return {"file": file, "line": code.co_firstlineno, "function": last}
    line = _adding_line(file, last) or _binding_line(file, last)
    if line is None:
        return None
    file, line = cellnames.place_of(file, line) or (file, line)
    return {"file": file, "line": line, "function": None}


def line_that_calls(file, name):
    """Where a file calls a function of that name first; a place, or None."""
    line = _first_line(file, lambda node: isinstance(node, ast.Call) and _is_named(node.func, name)) if file else None
    return {"file": file, "line": line, "function": None} if line is not None else None


def _binding_line(file, name):
    return _first_line(file, lambda node: isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and _is_named(node, name))


def _first_line(file, wanted):
    return min((line for line, _ in _lines(file, wanted)), default=None)


def _lines(file, wanted):
    """[(line, first line of the function that it stands in, None of none)] of the nodes of a file that are wanted."""
    text = "".join(linecache.getlines(file))
    if not text or len(text) > _LONGEST_SOURCE:
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found, waiting = [], [(tree, None)]
    while waiting:
        node, function = waiting.pop()
        if wanted(node):
            found.append((node.lineno, function))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        waiting.extend((child, function) for child in ast.iter_child_nodes(node))
    return found
