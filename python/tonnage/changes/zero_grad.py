# SPDX-License-Identifier: Apache-2.0
"""Gradients are released right after the update, so that none live through the next forward pass.

In the text: zero_grad() behind the step() of the same optimizer, and out of the place where it was if that is a
statement of the same block. Where the update is not in the user's files (Lightning), after each update while the
program runs.
"""

import ast

from . import arguments, code, hooks

_HOW = ("Call zero_grad() right after step(), so that the gradients of one update do not live through the next forward "
        "pass.")
_LIGHTNING = ("Give the LightningModule `def on_train_batch_end(self, *args): self.optimizers().zero_grad()`: "
              "Lightning zeroes right before backward.")

_rewritten = set()  # (file, line) of updates that the text takes care of


def edit(change, source):
    """Moves zero_grad() in one file."""
    zeros = [call for call in code.calls(source, "zero_grad") if isinstance(call.func, ast.Attribute)]
    for call in zeros:
        name = code.dotted(call.func.value)
        statement = source.statement(call)
        if name is None or not isinstance(statement, ast.Expr):
            continue
        for update in _updates(source, name, statement):
            _move(change, source, call, statement, update, name)


def _updates(source, name, zero):
    """Statements that are `name.step()` or `scaler.step(name)`, in the scope of the zeroing; a module's: any update."""
    scope = source.scope(zero)
    zeroed = [call.func for call in code.calls(source, "zero_grad") if isinstance(call.func, ast.Attribute)]
    optimizers = {code.dotted(function.value) for function in zeroed}
    found = []
    for call in code.calls(source, "step"):
        statement = source.statement(call)
        if source.scope(statement) is not scope or code.method_statement(statement, "step") is not call:
            continue
        owners = {code.dotted(call.func.value)} | {code.dotted(argument) for argument in call.args}
        if name in owners:
            found.append(statement)
        elif not owners & optimizers and _is_last_name(name, "model", "net", "module") and source.block(zero) is \
                source.block(statement) and "sched" not in (code.dotted(call.func.value) or ""):
            found.append(statement)
    return found


def _is_last_name(name, *words):
    return any(word in name.rpartition(".")[2].lower() for word in words)


def _move(change, source, call, zero, update, name):
    edits, block = change.edits(source), source.block(update)
    same_block = source.block(zero) is block
    position = block.index(update)
    if same_block and block.index(zero) > position:
        if call.keywords or call.args:
            _to_none(change, source, call)
        _rewritten.add((source.path, update.lineno))
        return  # it stands there already
    if not same_block and _depth(source, update) > _depth(source, zero):
        return  # zeroing more often than updating is another mistake, and another training
    update = _behind_scaler(source, block, position)
    edits.insert_after(update, "%s.zero_grad()" % name)
    if same_block and not _goes_backward(block[position + 1:] + block[:block.index(zero)]):
        edits.remove(zero)
    _rewritten.add((source.path, block[position].lineno))
    change.note(_place(source, zero), "%s.zero_grad() moved behind line %d" % (name, update.lineno))
    change.effect()
    arguments.say(change, _HOW)


def _goes_backward(statements):
    """Another model's pass comes between the update and the next zeroing: it may add to these gradients, too (a generator's to its
    discriminator's), so that both zeroings are needed."""
    return any(code.has_call(statement, "backward", "manual_backward") for statement in statements)


def _to_none(change, source, call):
    word = code.keyword(call, "set_to_none")
    value = word.value if word is not None else call.args[0] if call.args else None
    if isinstance(value, ast.Constant) and value.value is False:
        change.edits(source).replace(value, "True")
        change.note(_place(source, call), "zero_grad(set_to_none=False) keeps the gradients' memory")
        change.effect()
        arguments.say(change, "Let zero_grad() set gradients to None, as it does by default.")


def _behind_scaler(source, block, position):
    """scaler.update() belongs to the update."""
    following = block[position + 1] if position + 1 < len(block) else None
    call = code.method_statement(following, "update") if following is not None else None
    return following if call is not None and "scaler" in (code.dotted(call.func.value) or "") else block[position]


def _depth(source, node):
    depth = 0
    while node is not None:
        depth += isinstance(node, (ast.If, ast.For, ast.While))
        node = source.parents.get(node)
    return depth


def _place(source, node):
    scope = source.scope(node)
    return {"file": source.path, "line": node.lineno, "function": getattr(scope, "name", "<module>")}


def install(change):
    """Updates that are made by somebody else's code."""

    def updated(optimizer, frame):
        from _tonnage_guest import frames

        if frames.kind(frame.f_code, frame.f_globals) is frames.USER:
            return
        if arguments.is_managed(frame) != "lightning":
            return
        if any(parameter.grad is not None for group in optimizer.param_groups for parameter in group["params"]):
            optimizer.zero_grad(set_to_none=True)
            change.note(hooks.place(frame), "gradients released after each update")
            arguments.say(change, _LIGHTNING)
            change.effect()

    hooks.after_step(change.guarded(updated))
