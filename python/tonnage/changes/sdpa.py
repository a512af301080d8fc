# SPDX-License-Identifier: Apache-2.0
"""Attention through torch's scaled_dot_product_attention, which does not keep the weights of all pairs.

In the text: `w = (q @ k.transpose(-2, -1) / s).softmax(-1)` followed by `w @ v`. Models of transformers that were
told to use `attn_implementation="eager"` are told "sdpa". torch's MultiheadAttention takes it where nobody asks for the weights:
`y, _ = attention(q, k, v)` and `attention(q, k, v)[0]` throw them away.
"""

import ast

from . import arguments, code, wrap
from .source import Conflict

_FUNCTIONS = ("F", "torch", "functional", "nn.functional", "torch.nn.functional")
_WEIGHTS = "need_weights"
_HOW_WEIGHTS = ("Call MultiheadAttention with need_weights=False: nobody reads its weights, and it takes scaled_dot_product_attention then, "
                "which does not keep them. Where it has dropout, other elements are dropped.")
_HOW = "Use torch.nn.functional.scaled_dot_product_attention: it does not keep the attention weights."


def edit(change, source):
    """Finds attention by the formula in one file."""
    for statement in source.all(ast.Assign):
        if len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            found = _scores(source, _softmax(statement.value))
            if found is not None:
                _replace(change, source, statement, statement.targets[0].id, *found)
    for word in source.all(ast.keyword):
        if word.arg in ("attn_implementation", "_attn_implementation"):
            if isinstance(word.value, ast.Constant) and word.value.value == "eager":
                change.edits(source).replace(word.value, '"sdpa"')
                _tell(change, source, word.value, '%s="sdpa"' % word.arg)
    for call in _weights_thrown_away(source):
        code.add_argument(change.edits(source), call, "%s=False" % _WEIGHTS)
        _tell(change, source, call, "MultiheadAttention without need_weights", _HOW_WEIGHTS)


def _weights_thrown_away(source):
    """Calls of a MultiheadAttention that the file makes, whose second result nobody reads."""
    own = {node.name for node in source.all(ast.ClassDef)}
    if "MultiheadAttention" in own or not code.calls(source, "MultiheadAttention"):
        return []
    found = []
    for node in source.all(ast.Assign, ast.Subscript):
        call = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple):
            names = node.targets[0].elts
            call = node.value if len(names) == 2 and getattr(names[1], "id", None) == "_" else None
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            call = node.value
        if isinstance(call, ast.Call) and _is_attention(call):
            found.append(call)
    return found


def _is_attention(call):
    words = {word.arg for word in call.keywords}
    takes = len(call.args) == 3 or {"query", "key", "value"} <= words
    return takes and None not in words and not words & {_WEIGHTS, "average_attn_weights"} and code.last(call.func) != "MultiheadAttention"


def _softmax(node):
    """What a softmax over the last dimension is taken of, or None."""
    if not isinstance(node, ast.Call) or code.last(node.func) != "softmax":
        return None
    arguments_ = list(node.args)
    is_method = isinstance(node.func, ast.Attribute) and code.dotted(node.func.value) not in _FUNCTIONS
    inner = node.func.value if is_method else arguments_.pop(0) if arguments_ else None
    word = code.keyword(node, "dim")
    dim = word.value if word is not None else arguments_[0] if arguments_ else None
    last = isinstance(dim, ast.UnaryOp) and isinstance(dim.op, ast.USub) and getattr(dim.operand, "value", 0) == 1
    return inner if last and len(node.keywords) <= 1 else None


def _scores(source, node):
    """(q, k, scale as text) of q @ k^T with a scale, or None."""
    scale = "1.0"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
        factor = source.of(node.right)
        scale = "1 / (%s)" % factor if isinstance(node.op, ast.Div) else factor
        node = node.left
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        q, k = node.left, node.right
    elif isinstance(node, ast.Call) and code.last(node.func) in ("matmul", "bmm") and len(node.args) == 2:
        q, k = node.args
    else:
        return None
    if not isinstance(k, ast.Call) or not isinstance(k.func, ast.Attribute):
        return None
    if k.func.attr == "transpose" and [source.of(argument) for argument in k.args] not in (["-2", "-1"], ["-1", "-2"]):
        return None
    if k.func.attr not in ("transpose",) or (isinstance(q, ast.BinOp)):
        return None
    return source.of(q), source.of(k.func.value), scale


def _replace(change, source, statement, name, q, k, scale):
    uses = [node for node in ast.walk(source.scope(statement)) if isinstance(node, ast.Name) and node.id == name]
    product = source.parents.get(uses[-1]) if len(uses) == 2 else None
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.MatMult) or product.left is not uses[-1]:
        return
    if source.statement(product).lineno <= statement.lineno:
        raise Conflict("the weights are used before they are made")
    edits = change.edits(source)
    edits.replace(product, "torch.nn.functional.scaled_dot_product_attention(%s, %s, %s, scale=%s)" % (
        q, k, source.of(product.right), scale))
    edits.remove(statement)
    code.need_import(edits, "torch")
    _tell(change, source, statement, "scaled_dot_product_attention (keeps no scores)")


def _tell(change, source, node, what, how=_HOW):
    change.note(wrap.place_of(source, node), what)
    change.effect()
    arguments.say(change, how)
