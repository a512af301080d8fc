# SPDX-License-Identifier: Apache-2.0
"""Calls from outside into modules and compiled functions: where they begin, and where they end.

torch's global module hooks would show this, too, but torch.compile refuses to trace through them: with fullgraph=True the
program fails, without it one graph becomes several, which hold other memory than on a card (doc/design/0005-guest-hook.md).
So nothing is registered. Two things of torch are replaced, neither of which Dynamo looks at:

    modules             the code of Module._wrapped_call_impl, by torch's own statements with two calls around them. The
                        function stays the very object, file, lines and columns of its frames stay as they were
    compiled functions  _maybe_set_eval_frame in Dynamo's own module, which each call of a compiled function goes through

While torch compiles or exports, the replaced code does what torch's does. Calls inside another call are no concern of
ours, nor are calls in a backward pass (recomputation). Frames of ours are left alone by Dynamo as the standard library's are.
"""

import ast
import copy
import sys
import threading

from . import frames, guard, imports, torchapi
from .state import state

_NAME = "_tonnage_calls"  # in the module of torch that the replaced code runs in
_WRAPPERS = ("compile_wrapper", "_fn")  # Dynamo's functions around a compiled one, by release

_inside = {}  # thread -> the frame's id for a compiled function, None for a module
_failing = {}  # thread -> the exception that was being handled as its compiled call began
_ident = threading.get_ident

begins = []  # called with (module or None, args, kwargs, frame) as a call begins
ends = []  # called with (args, kwargs, frame) when one has returned; not when it raised


def install(torch):
    """Called once torch is imported. False where this release of torch has another way to call modules."""
    imports.watch("torch._dynamo.trace_rules", guard.guarded(_leave_ours_alone))
    imports.watch("torch._dynamo.eval_frame", guard.guarded(_watch_compiled))
    return _watch_modules(sys.modules["torch.nn.modules.module"])


def forget():
    """A forked child is inside of nothing."""
    _inside.clear()
    _failing.clear()


# ---- modules ----


class _Calls:
    """What the replaced code calls."""

    __slots__ = ()

    def begin(self, module, args, kwargs):
        """True when this is a call from outside: left() follows, and returned() before it unless the call raises."""
        thread = _ident()
        if thread in _inside or not state.cuda_initialized or state.in_backward or not state.armed:
            return False
        _inside[thread] = None
        _tell_begin(module, args, kwargs, frames.caller(1))
        return True

    def returned(self, args, kwargs):
        """The call has a result."""
        _tell_end(args, kwargs, frames.caller(1))

    def left(self):
        """The call is over."""
        _inside.pop(_ident(), None)


def _watch_modules(module):
    function = module.Module.__dict__.get("_wrapped_call_impl")
    code = _replaced(function)
    if code is None:
        return False
    setattr(module, _NAME, _Calls())
    function.__code__ = code
    return True


def _replaced(function):
    """The code of `function` with our calls around its own statements, each at its own place in torch's file; None where
    that cannot be had."""
    original = getattr(function, "__code__", None)
    if original is None or original.co_freevars or original.co_varnames[:3] != ("self", "args", "kwargs"):
        return None
    definition = _definition(torchapi.text_of(original.co_filename).splitlines(), original)
    if definition is None:
        return None
    definition.body = _around(definition.body)
    tree = ast.Module(body=[definition], type_ignores=[])
    names = {}
    exec(compile(ast.fix_missing_locations(tree), original.co_filename, "exec"), names)  # defines it, runs nothing of it
    code = names[original.co_name].__code__
    return code.replace(co_qualname=original.co_qualname) if hasattr(code, "co_qualname") else code


def _definition(lines, code):
    """The tree of a method with its lines and columns in the file."""
    first = code.co_firstlineno
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    last = first
    while last < len(lines) and (not lines[last].strip() or lines[last][:indent + 1].isspace()):
        last += 1
    if indent == 0 or first < 2:
        return None
    tree = ast.parse("\n" * (first - 2) + "if 1:\n" + "\n".join(lines[first - 1:last]))
    found = tree.body[0].body[0]
    return found if isinstance(found, ast.FunctionDef) and found.name == code.co_name else None


def _around(body):
    """torch's statements twice: as they are for calls that do not concern us, and with our calls."""
    test = "torch.compiler.is_compiling() or not %s.begin(self, args, kwargs)" % _NAME
    plain = ast.If(test=_expression(test, body[0]), body=body, orelse=[])
    watched = _Returns().visit(ast.Module(body=copy.deepcopy(body), type_ignores=[])).body
    leave = ast.Expr(_expression("%s.left()" % _NAME, body[0]))
    whole = ast.Try(body=watched, handlers=[], orelse=[], finalbody=[_at(leave, body[0])])
    return [_at(plain, body[0]), _at(whole, body[0])]


class _Returns(ast.NodeTransformer):
    """`return f(x)` becomes: the result is f(x), we are told, and it is returned."""

    def visit_Return(self, node):
        name = _NAME + "_result"
        keep = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=node.value)
        tell = ast.Expr(_expression("%s.returned(args, kwargs)" % _NAME, node))
        give = ast.Return(value=ast.Name(id=name, ctx=ast.Load()))
        return [_at(each, node) for each in (keep, tell, give)]


def _expression(text, place):
    node = ast.parse(text, mode="eval").body
    for each in ast.walk(node):
        if hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node


def _at(node, place):
    """The statement at this place; what stands inside it keeps its own, where it has one."""
    ast.copy_location(node, place)
    for each in ast.iter_child_nodes(node):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node


# ---- compiled functions ----


def _leave_ours_alone(rules):
    """Frames of ours are no business of Dynamo's, as those of the standard library."""
    rules.SKIP_DIRS.append(frames.own_folder())
    rules._recompile_re()


def _watch_compiled(module):
    original = module._maybe_set_eval_frame

    def _maybe_set_eval_frame(callback):
        if callback is not None and callback is not False:
            _compiled_begins(frames.caller())
            return original(callback)
        result = original(callback)
        _compiled_ends(frames.caller())
        return result

    module._maybe_set_eval_frame = _maybe_set_eval_frame


def _compiled_begins_at(frame):
    thread = _ident()
    if thread in _inside or frame is None or frame.f_code.co_name not in _WRAPPERS:
        return
    if not state.cuda_initialized or state.in_backward:
        return
    _inside[thread] = id(frame)
    _failing[thread] = sys.exc_info()[1]
    called = frame.f_locals
    _tell_begin(None, called.get("args", ()), called.get("kwargs") or {}, frame)


def _compiled_ends_at(frame):
    thread = _ident()
    if frame is None or _inside.get(thread) != id(frame):
        return
    failed = sys.exc_info()[1] is not _failing.pop(thread, None)
    try:
        if not failed:
            called = frame.f_locals
            _tell_end(called.get("args", ()), called.get("kwargs") or {}, frame)
    finally:
        _inside.pop(thread, None)


_compiled_begins = guard.guarded(_compiled_begins_at)
_compiled_ends = guard.guarded(_compiled_ends_at)


# ---- telling ----


@guard.guarded
def _tell_begin(module, args, kwargs, frame):
    for listener in begins:
        listener(module, args, kwargs, frame)


@guard.guarded
def _tell_end(args, kwargs, frame):
    for listener in ends:
        listener(args, kwargs, frame)
