# SPDX-License-Identifier: Apache-2.0
"""What a program keeps beyond a step: `list.append(x)`, `total += x`, `table[key] = x`, `all = cat([all, x])` in a loop.

Each place gets a probe, which sees the values; a place whose values never concern the change keeps its text.
"""

import ast
import weakref

from . import code, wrap

_METHODS = ("training_step", "validation_step", "test_step", "predict_step", "shared_step")
_EVALUATIONS = ("eval", "valid", "test", "predict", "infer")
_CATS = ("cat", "concat", "concatenate", "hstack", "vstack")
_probes = {}  # (id of the change, number) -> Probe
_numbers = iter(range(1, 1 << 30))
_places = weakref.WeakKeyDictionary()  # Source -> places(), which several changes ask for


class Probe:
    """One place that keeps something."""

    def __init__(self, change, source, node, line):
        self.change = change
        self.source = source
        self.node = node
        self.line = line
        self.text = None  # what the patch writes


def places(source):
    """Nodes of values that are kept for longer than one step.

    A loop inside a step (over time, over layers) keeps values too, and a gradient comes back through them: only loops
    that go backward themselves, that walk over a loader, or that stand in an evaluation count as loops over steps."""
    if source not in _places:
        _places[source] = _find(source)
    return _places[source]


def _find(source):
    found = []
    if not _may_loop_over_steps(source):
        return found
    for node in source.all(ast.Expr, ast.AugAssign, ast.Assign):
        value, holder = _kept(node)
        if value is not None and holder is not None and not isinstance(value, ast.Constant):
            scope = source.scope(node)
            method = getattr(scope, "name", "") in _METHODS and holder.startswith("self.")
            if method or (_outlives_a_step(source, node, scope, holder) and not _differentiated(scope, holder)):
                found.append(value)
    return found


def _may_loop_over_steps(source):
    """False where nothing in the text is called as what such a loop does, runs over or stands in."""
    names = " ".join(source.before_brackets).lower()
    return any(word in names for word in ("backward", *_METHODS, *_EVALUATIONS)) or "loader" in source.text.lower()


def _kept(node):
    """(value, name of what keeps it) of a statement, or (None, None)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1:
            return call.args[0], code.dotted(_bare(call.func.value))
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value, code.dotted(_bare(node.target))
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Subscript):
            return value, code.dotted(_bare(target))
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and code.dotted(target) is not None:
            if code.dotted(value.left) == code.dotted(target):
                return value.right, code.dotted(target)
        if _is_cat_to(value, code.dotted(target)):
            return value.args[0], code.dotted(target)
    return None, None


def _is_cat_to(value, name):
    """True for `cat([name, ...])`."""
    if not isinstance(value, ast.Call) or code.last(value.func) not in _CATS or not value.args or name is None:
        return False
    parts = value.args[0].elts if isinstance(value.args[0], (ast.List, ast.Tuple)) else []
    return any(code.dotted(part) == name for part in parts)


def _bare(node):
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _outlives_a_step(source, node, scope, holder):
    """True when a loop over steps is around a statement and what keeps the value is not made in that loop."""
    loop = source.above(node, *code.LOOPS)
    while loop is not None:
        if _made_in(loop, holder):
            return False
        outer = source.above(loop, *code.LOOPS)
        if _is_over_steps(loop) or (outer is None and _evaluates(scope)):
            return True
        loop = outer
    return False


def _made_in(loop, holder):
    """True when a statement of a loop binds what keeps values anew; adding to it does not."""
    name = holder.split(".")[0]
    targets = [loop.target] if hasattr(loop, "target") else []
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and not _adds(node, holder):
            targets.extend(node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
            targets.append(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets.append(node.optional_vars)
    return any(name in code.stored(target) for target in targets)


def _evaluates(scope):
    name = getattr(scope, "name", "").lower()
    return any(word in name for word in _EVALUATIONS) or code.has_call(scope, "eval")


def _is_over_steps(loop):
    if code.has_call(loop, "backward", "manual_backward"):
        return True
    names = [code.last(n) or "" for n in ast.walk(getattr(loop, "iter", loop.body[0])) if isinstance(
        n, (ast.Name, ast.Attribute))]
    return isinstance(loop, (ast.For, ast.AsyncFor)) and any("loader" in name.lower() for name in names)


def _adds(statement, holder):
    if not isinstance(statement, ast.Assign) or code.dotted(statement.targets[0]) != holder:
        return False
    return isinstance(statement.value, ast.BinOp) or _is_cat_to(statement.value, holder)


def _differentiated(scope, holder):
    """True when a backward pass, or a value of forward(), is made of what was kept."""
    tainted = {holder.split(".")[0]} if "." not in holder else {holder}
    for _ in range(3):
        for statement in ast.walk(scope):
            if isinstance(statement, ast.Assign) and any(code.mentions(statement.value, name) for name in tainted):
                tainted |= code.stored(statement)
    if getattr(scope, "name", "") == "forward":
        return True
    for call in ast.walk(scope):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("backward", "manual_backward", "scale"):
            parts = [call.func.value] + list(call.args)
            if any(code.mentions(part, name) for part in parts for name in tainted):
                return True
    return False


def probe(change, source, node, module):
    """Puts a probe around a value; returns its number."""
    number = next(_numbers)
    _probes[number] = Probe(change, source, node, node.lineno)
    seen_by = '__import__("sys").modules["_tonnage_changes.kept"].seen(%d, "%s", %s)'
    change.trial_edits(source).replace(node, seen_by % (number, module, source.of(node)))
    return number


def seen(number, module, value):
    """Called by the program in the place of a value that it keeps."""
    import sys

    change = _probes[number].change
    treat = sys.modules["_tonnage_changes." + module].treat
    return change.guarded(treat, value)(change, number, value)


def effective(change, number, text, what):
    """A probe did something; the patch writes `text` with the value's own text in it."""
    probe_ = _probes[number]
    change.effect()
    if probe_.text is None:
        probe_.text = text
        node, source = probe_.node, probe_.source
        simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Tuple, ast.List, ast.Dict))
        whole = source.of(node) if simple else "(%s)" % source.of(node)
        change.edits(source).replace(node, text % whole)
        change.note(wrap.place_of(source, node), "%s is %s" % (source.of(node), what))


def is_result(value):
    """True for a tensor that something computed, or may have. What is trained (a parameter, another leaf) is none: a list of parameters is an
    optimizer's, and must have the very ones."""
    import torch

    return isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter) and not (value.is_leaf and value.requires_grad)


def each_tensor(value, concerns, treat, text):
    """(value with the results in it treated, how to write that); the very value when none concerns us, or some of its tensors are none."""
    import torch

    parts = value if type(value) in (tuple, list) else value.values() if type(value) is dict else (value,)
    if any(isinstance(v, torch.Tensor) and not is_result(v) for v in parts):
        return value, None
    if isinstance(value, torch.Tensor):
        return (treat(value), text) if concerns(value) else (value, None)
    if type(value) in (tuple, list) and any(isinstance(v, torch.Tensor) and concerns(v) for v in value):
        made = [treat(v) if isinstance(v, torch.Tensor) else v for v in value]
        word = "tuple(%s for x in %%s)" if type(value) is tuple else "[%s for x in %%s]"
        return type(value)(made), word % (text % "x")
    if type(value) is dict and any(isinstance(v, torch.Tensor) and concerns(v) for v in value.values()):
        made = {k: treat(v) if isinstance(v, torch.Tensor) else v for k, v in value.items()}
        return made, "{k: %s for k, x in %%s.items()}" % (text % "x")
    return value, None
