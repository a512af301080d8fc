# SPDX-License-Identifier: Apache-2.0
"""Calls from outside into modules and compiled functions: where they begin, and where they end.

torch's global module hooks would show this, too, but torch.compile refuses to trace through them: with fullgraph=True the
program fails, without it one graph becomes several, which hold other memory than on a card (doc/design/0005-guest-hook.md).
So nothing is registered. Two things of torch are replaced, neither of which Dynamo looks at:

    modules             the code of Module._wrapped_call_impl, by torch's own statements with two calls around them. The
                        function stays the very object, file, lines and columns of its frames stay as they were
    compiled functions  _maybe_set_eval_frame in Dynamo's own module, which each call of a compiled function goes through

While torch compiles, exports or traces, the replaced code does what torch's does. Calls inside another call are no concern of
ours, nor are calls in a backward pass (recomputation). Frames of ours are left alone by Dynamo as the standard library's are.
"""

import ast
import copy
import sys
import threading

from . import events, frames, guard, origin, recode
from .state import state

_NAME = "_tonnage_calls"  # in the module of torch that the replaced code runs in
_WRAPPERS = ("compile_wrapper", "_fn")  # Dynamo's functions around a compiled one, by release

_inside = {}  # thread -> the frame's id for a compiled function, None for a module
_failing = {}  # thread -> the exception that was being handled as its compiled call began
_ident = threading.get_ident


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
        if thread in _inside or not state.cuda_initialized or state.in_backward or not state.armed or is_traced():
            return False
        _inside[thread] = None
        events.call_began(module, args, kwargs, frames.caller(1))
        return True

    def returned(self, module, args, kwargs, result):
        """The call has a result."""
        frame = frames.caller(1)
        events.call_made(module, result, frame)
        events.call_ended(args, kwargs, frame)

    def left(self):
        """The call is over."""
        _inside.pop(_ident(), None)


def is_traced():
    """True while torch.jit.trace records a graph (exporters and TensorBoard's add_graph do so, too): sizes of tensors are tensors then, and
    what reads them is recorded and warned of."""
    return state.torch._C._get_tracing_state() is not None


def watch_modules(cls, name):
    """Gives torch's method other code."""
    return recode.replace(sys.modules[cls.__module__], cls.__dict__.get(name), _NAME, _Calls(), _around, ("self", "args", "kwargs"))


def _around(body):
    """torch's statements twice: as they are for calls that do not concern us, and with our calls."""
    test = "torch.compiler.is_compiling() or not %s.begin(self, args, kwargs)" % _NAME
    plain = ast.If(test=recode.expression(test, body[0]), body=body, orelse=[])
    watched = _Returns().visit(ast.Module(body=copy.deepcopy(body), type_ignores=[])).body
    leave = recode.call("%s.left()" % _NAME, body[0])
    whole = ast.Try(body=watched, handlers=[], orelse=[], finalbody=[leave])
    return [recode.at(plain, body[0]), recode.at(whole, body[0])]


class _Returns(ast.NodeTransformer):
    """`return f(x)` becomes: the result is f(x), we are told, and it is returned."""

    def visit_Return(self, node):
        name = _NAME + "_result"
        keep = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=node.value)
        tell = recode.call("%s.returned(self, args, kwargs, %s)" % (_NAME, name), node)
        give = ast.Return(value=ast.Name(id=name, ctx=ast.Load()))
        return [recode.at(each, node) for each in (keep, tell, give)]


# ---- compiled functions ----


def leave_ours_alone(rules, name):
    """Frames of ours are no business of Dynamo's, as those of the standard library."""
    getattr(rules, name).append(origin.own_folder())
    rules._recompile_re()


def around_switch(original):
    """For Dynamo's function that switches it on around a compiled call, and back after it."""

    def _maybe_set_eval_frame(callback):
        if callback is not None and callback is not False:
            _compiled_begins(frames.caller())
            return original(callback)
        result = original(callback)
        _compiled_ends(frames.caller())
        return result

    return _maybe_set_eval_frame


def _compiled_begins_at(frame):
    thread = _ident()
    if thread in _inside or frame is None or frame.f_code.co_name not in _WRAPPERS:
        return
    if not state.cuda_initialized or state.in_backward:
        return
    _inside[thread] = id(frame)
    _failing[thread] = sys.exc_info()[1]
    called = frame.f_locals
    events.call_began(None, called.get("args", ()), called.get("kwargs") or {}, frame)


def _compiled_ends_at(frame):
    thread = _ident()
    if frame is None or _inside.get(thread) != id(frame):
        return
    failed = sys.exc_info()[1] is not _failing.pop(thread, None)
    try:
        if not failed:
            called = frame.f_locals
            events.call_ended(called.get("args", ()), called.get("kwargs") or {}, frame)
    finally:
        _inside.pop(thread, None)


_compiled_begins = guard.guarded(_compiled_begins_at)
_compiled_ends = guard.guarded(_compiled_ends_at)
