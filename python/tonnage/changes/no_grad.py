# SPDX-License-Identifier: Apache-2.0
"""No graph in an evaluation that never goes backward.

In the text: what stands behind `x.eval()` and uses x, up to `x.train()` or the end of the block, goes into `with
torch.no_grad()` where it contains no backward(). While the program runs: a module in evaluation mode that is called
with gradients enabled, in a program that trains, elsewhere.
"""

import ast
import weakref

from . import arguments, code, hooks

_HOW = "Wrap the evaluation in `with torch.no_grad():`, so that nothing is kept for a backward pass that never runs."
_OFF = ("no_grad", "inference_mode")


def edit(change, source):
    """Wraps evaluations of one file."""
    for call in code.calls(source, "eval"):
        statement = source.statement(call)
        name = code.dotted(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if call.args or name is None:
            continue
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name = code.dotted(statement.targets[0]) or name
        elif not isinstance(statement, ast.Expr):
            continue
        if not _is_off(source, statement):
            block = source.block(statement)
            _wrap_behind(change, source, block[block.index(statement) + 1:], name)


def _wrap_behind(change, source, statements, name):
    for statement in statements:
        if code.method_statement(statement, "train") is not None:
            break
        if code.has_call(statement, "backward", "manual_backward", "train", "step"):
            continue
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Return)):
            continue
        if isinstance(statement, ast.With):
            if not _switches_off(statement):
                _wrap_behind(change, source, statement.body, name)
        elif _uses(statement, name):
            _wrap(change, source, statement)


def _uses(statement, name):
    """True when a statement calls what is in evaluation, or hands it to a function."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            parts = [node.func] + list(node.args) + [word.value for word in node.keywords]
            if code.dotted(node.func) == name or any(code.dotted(part) == name for part in parts[1:]):
                return True
            if isinstance(node.func, ast.Attribute) and code.dotted(node.func.value) == name:
                if node.func.attr in ("generate", "forward"):
                    return True
    return False


def _wrap(change, source, statement):
    edits = change.edits(source)
    if any(first <= statement.lineno <= end for first, end, header in edits.wraps):
        return
    edits.wrap([statement], "with torch.no_grad():")
    code.need_import(edits, "torch")
    scope = source.scope(statement)
    change.note({"file": source.path, "line": statement.lineno, "function": getattr(scope, "name", "<module>")},
                "lines %d to %d run under no_grad" % (statement.lineno, statement.end_lineno))
    change.effect()
    arguments.say(change, _HOW)


def _is_off(source, node):
    """True under `with torch.no_grad()` or in a function that is decorated with it."""
    while node is not None:
        if isinstance(node, ast.With) and _switches_off(node):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_is_switch(decorator) for decorator in node.decorator_list):
                return True
        node = source.parents.get(node)
    return False


def _switches_off(statement):
    return any(_is_switch(item.context_expr) for item in statement.items)


def _is_switch(node):
    if isinstance(node, ast.Call):
        node = node.func
    return code.last(node) in _OFF


def install(change):
    """Evaluations that the text does not show: a module that was trained before is called in evaluation mode."""
    trained = weakref.WeakSet()

    def called(module, frame):
        import torch

        if module.training:
            trained.add(module)
        elif torch.is_grad_enabled() and module in trained and not change.patches:
            _call_without(change, torch, module, frame)

    hooks.before_forward(change.guarded(called))


def _call_without(change, torch, module, frame):
    """Gradients are off until the call that begins now has ended."""
    off = torch.no_grad()
    handle = module.register_forward_hook(lambda *args: _leave(off, handle), always_call=True)
    off.__enter__()
    change.note(hooks.place(frame), "%s in evaluation mode is called under no_grad" % type(module).__name__)
    arguments.say(change, _HOW)
    change.effect()


def _leave(off, handle):
    handle.remove()
    off.__exit__(None, None, None)
