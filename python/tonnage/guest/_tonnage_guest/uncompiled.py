# SPDX-License-Identifier: Apache-2.0
"""torch's compiler is imported by what compiles, not by the first optimizer: that is 0.7 to 0.9 s of each training program.

torch marks functions that are not to be compiled, and imports the compiler to mark them as soon as one is called; step() tells the compiler to stop
there. Nothing can be compiled while nobody has imported the compiler, so that until then the functions are called as they are, and nobody is told. The
frames and lines of torch stay its own. When Python looks for cycles depends on how many objects there are, and with it how long a program's cycles hold memory of
the card: so as many objects come as the compiler has. Not where the computer's memory is asked for (doc/design/0036-hosts.md): the compiler's is part of it.
"""

import ast
import sys

from . import recode

_NAME = "_tonnage_compiler"  # in the module of torch that the changed code runs in
_COMPILER = "torch._dynamo"
_ASKED = "%s()" % _NAME


_OBJECTS = 100_000  # that Python's collector counts: 98,000 of torch 2.11's compiler, 105,000 and 140,000 of 2.6's and 2.15's
_in_its_place = []


def _is_there():
    if _COMPILER in sys.modules:
        return True
    if not _in_its_place:
        _in_its_place.extend([] for _ in range(_OBJECTS))
    return False


def mark_late(module):
    """For torch._compile: a function that is not to be compiled is marked once there is a compiler."""
    return recode.replace(module, getattr(module, "_disable_dynamo", None), _NAME, _is_there, _calls_as_it_is)


def stop_late(module):
    """For torch.optim.optimizer: step() tells the compiler once there is one."""
    return recode.replace(module, getattr(module, "_use_grad_for_differentiable", None), _NAME, _is_there, _tells_if_there)


def _inner(body, arguments):
    """The function that is made in a decorator and takes anything; None: there is not one."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    found = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.args.vararg is not None and node.args.kwarg is not None]
    if len(found) != 1 or [each.arg for each in found[0].args.args] not in arguments:
        return None
    return found[0]


def _calls_as_it_is(body):
    """`if not compiler(): return fn(*args, **kwargs)` before torch's statements."""
    inner = _inner(body, ([],))
    if inner is None or (inner.args.vararg.arg, inner.args.kwarg.arg) != ("args", "kwargs") or not _reads(body, "fn"):
        return None
    place = inner.body[-1]  # where torch makes the call
    if not isinstance(place, ast.Return) or not isinstance(place.value, ast.Call):
        return None
    answer = recode.at(ast.Return(recode.expression("fn(*args, **kwargs)", place.value)), place)
    inner.body.insert(0, recode.at(ast.If(recode.expression("not %s" % _ASKED, place), [answer], []), place))
    return body


def _reads(body, name):
    return any(isinstance(node, ast.Name) and node.id == name for statement in body for node in ast.walk(statement))


def _tells_if_there(body):
    """The import of the compiler, and what it is told, become conditional."""
    inner = _inner(body, ([], ["self"]))
    if inner is None:
        return None
    changed = _Conditional()
    changed.visit(inner)
    return body if changed.imports == 1 and changed.told else None


class _Conditional(ast.NodeTransformer):
    """Counts what it has changed."""

    def __init__(self):
        self.imports = self.told = 0

    def visit_Import(self, node):
        self.imports += [each.name for each in node.names] == [_COMPILER]
        return self._if_there(node, ast.Import([ast.alias("torch")]))  # either way the function has a name torch of its own

    def visit_Expr(self, node):
        is_told = ast.unparse(node.value) == _COMPILER + ".graph_break()"
        self.told += is_told
        return self._if_there(node) if is_told else node

    def _if_there(self, node, *other):
        return recode.at(ast.If(recode.expression(_ASKED, node), [node], [recode.at(each, node) for each in other]), node)
