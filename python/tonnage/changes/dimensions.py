# SPDX-License-Identifier: Apache-2.0
"""How many dimensions a tensor has, where the text says it: from views, permutations, einops' patterns and `B, T, C = x.shape`.

Pure functions over Source. What a module gives has as many as what it takes: true of linear layers, normalisation and convolutions.
"""

import ast
import re

from . import code

_SAME = ("transpose", "contiguous", "float", "half", "to", "type", "softmax", "clone", "detach", "swapaxes", "type_as", "mul", "div")


def of(source, node, statement, depth=0):
    """The number of dimensions, where the text says it; or None."""
    if depth > 6 or node is None:
        return None
    if isinstance(node, ast.BinOp):
        return of(source, node.left, statement, depth + 1) or of(source, node.right, statement, depth + 1)
    if isinstance(node, ast.Name):
        return _of_name(source, node.id, statement, depth + 1)
    if not isinstance(node, ast.Call):
        return None
    name, sizes = code.last(node.func), node.args
    if name == "rearrange" and len(sizes) >= 2 and isinstance(sizes[1], ast.Constant) and "->" in str(sizes[1].value):
        return len(re.sub(r"\([^)]*\)", "x", sizes[1].value.partition("->")[2]).split())
    if not isinstance(node.func, ast.Attribute):
        return None
    if name in ("view", "reshape", "permute", "expand") and sizes:
        sizes = sizes[0].elts if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple) else sizes
        return None if len(sizes) < 2 or any(isinstance(size, ast.Starred) for size in sizes) else len(sizes)
    if name in _SAME:
        return of(source, node.func.value, statement, depth + 1)
    own = any(function.name == name for function in source.all(ast.FunctionDef))  # a method, as split_heads
    if getattr(node.func.value, "id", None) == "self" and len(sizes) == 1 and not own:
        return of(source, sizes[0], statement, depth + 1)
    return None


def _of_name(source, name, statement, depth):
    scope = source.scope(statement)
    before = [node for node in ast.walk(scope) if isinstance(node, ast.Assign) and node.lineno < statement.lineno]
    for node in sorted(before, key=lambda node: -node.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                return of(source, node.value, node, depth)
            if isinstance(target, ast.Tuple) and name in [getattr(part, "id", None) for part in target.elts]:
                index = [getattr(part, "id", None) for part in target.elts].index(name)
                return _of_part(source, node.value, index, node, depth)
    for node in ast.walk(scope):  # `B, T, C = x.shape`
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            if source.of(node.value) in (name + ".shape", name + ".size()") and not any(
                    isinstance(part, ast.Starred) for part in node.targets[0].elts):
                return len(node.targets[0].elts)
    return None


def _of_part(source, value, index, statement, depth):
    if isinstance(value, ast.Tuple) and index < len(value.elts):
        return of(source, value.elts[index], statement, depth)
    if isinstance(value, ast.Call) and code.last(value.func) in ("chunk", "split"):
        return of(source, value.func.value, statement, depth) if isinstance(value.func, ast.Attribute) else None
    if isinstance(value, ast.Call) and code.last(value.func) == "map" and isinstance(value.args[0], ast.Lambda):
        return of(source, value.args[0].body, statement, depth)
    if isinstance(value, ast.GeneratorExp):
        return of(source, value.elt, statement, depth)
    if isinstance(value, ast.Call) and code.last(value.func) == "unbind" and isinstance(value.func, ast.Attribute):
        whole = of(source, value.func.value, statement, depth)
    else:  # a tensor that is taken apart
        whole = of(source, value, statement, depth)
        if isinstance(value, ast.Call) and code.last(value.func) not in ("view", "reshape", "permute", "transpose"):
            return None
    return whole - 1 if whole else None
