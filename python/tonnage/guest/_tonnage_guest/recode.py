# SPDX-License-Identifier: Apache-2.0
"""Gives a function of torch other code: torch's own statements at their own lines and columns, with calls of ours between.

The function stays the very object, whoever has imported it by name; no frame of ours stands in a traceback. What is called is
found in the globals of the function's module under a name that begins with _tonnage.
"""

import ast

from . import torchapi


def replace(module, function, name, called, change, arguments=()):
    """function's body becomes change(body), in which `called` is known as `name`. False where the function, or its text,
    is not there, does not begin with these arguments, or change() returns None."""
    code = _changed(function, change, arguments)
    if code is None:
        return False
    setattr(module, name, called)
    function.__code__ = code
    return True


def _changed(function, change, arguments):
    original = getattr(function, "__code__", None)
    if original is None or original.co_freevars or original.co_varnames[:len(arguments)] != arguments:
        return None
    definition = _definition(torchapi.text_of(original.co_filename).splitlines(), original)
    body = change(definition.body) if definition is not None else None
    if body is None:
        return None
    definition.body = body
    tree = ast.Module(body=[definition], type_ignores=[])
    names = {}
    exec(compile(ast.fix_missing_locations(tree), original.co_filename, "exec", dont_inherit=True), names)  # defines it only
    code = names[original.co_name].__code__
    return code.replace(co_qualname=original.co_qualname) if hasattr(code, "co_qualname") else code


def _definition(lines, code):
    """The tree of a function with its lines and columns in the file, without its annotations."""
    first = code.co_firstlineno
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    last = first
    while last < len(lines) and _belongs(lines[last], indent):
        last += 1
    if first < 2:
        return None
    head = "if 1:\n" if indent else "\n"
    tree = ast.parse("\n" * (first - 2) + head + "\n".join(lines[first - 1:last]))
    found = tree.body[0].body[0] if indent else tree.body[0]
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        return None
    found.returns = None
    for each in ast.walk(found.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    return found


def _belongs(line, indent):
    """True for a line of a function that is indented so far: deeper, empty, or the end of its arguments."""
    return not line.strip() or line[:indent + 1].isspace() or line[:indent + 1].lstrip() == ")"


def expression(text, place):
    """An expression that stands at the place of another node."""
    node = ast.parse(text, mode="eval").body
    for each in ast.walk(node):
        if hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node


def call(text, place):
    """A statement that is a call, at the place of another node."""
    return at(ast.Expr(expression(text, place)), place)


def at(node, place):
    """The statement at this place; what stands inside it keeps its own, where it has one."""
    ast.copy_location(node, place)
    for each in ast.iter_child_nodes(node):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node
