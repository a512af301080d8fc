# SPDX-License-Identifier: Apache-2.0
"""Accumulation where no DataLoader makes the batch (accumulate.py): the program draws it itself, from a function, a replay buffer or
a generator of random numbers, or hands it to a function that updates on it many times.

What reads the batch, from the first statement to the backward pass, goes into a loop over pieces of it:

    data = buffer.sample(args.batch_size)          data = buffer.sample(args.batch_size)
    loss = lossof(model(data))                     optimizer.zero_grad()
    optimizer.zero_grad()                          for data in in_pieces(data, 2):
    loss.backward()                                    loss = lossof(model(data))
    optimizer.step()                                   (loss / 2).backward()
                                                   optimizer.step()

This is an edit of the text, so that the patch is what was tried. Each backward pass of the same batch gets a loop of its own. Nothing is
done where a statement inside updates, leaves the loop, draws another batch, or hands something on to the next one.
"""

import ast

from . import code, wrap
from .source import Conflict

_RANDOM = ("rand", "randn", "randint", "normal", "full", "ones", "zeros", "empty")
_NO_SAMPLES = ("arange", "permutation", "randperm", "range")
_OF_ALL = ("std", "var", "cov", "corrcoef")  # of what a loss is computed of: those of a piece are others
_NO_BATCHES = ("loader", "dataset", "sampler", "args", "parse", "config", "model", "embed", "norm")
_COUNTS = ("range", "trange", "count")
_BARS = ("tqdm", "track", "enumerate")
_NO_ROWS = ("edge", "adj", "graph", "mask", "index")  # parameters whose first dimension need not be that of samples
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_HELPER = '''\
def in_pieces(batch, count):
    """A batch in `count` pieces, along its first dimension."""

    def samples(value):
        if hasattr(value, "shape"):
            return len(value) if len(value.shape) else 0
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        return next(filter(None, map(samples, parts)), 0)

    def piece(value, first, last):
        if hasattr(value, "shape"):
            return value[first:last] if len(value.shape) and len(value) == whole else value
        if isinstance(value, dict):
            return {key: piece(part, first, last) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            parts = [piece(part, first, last) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    whole = samples(batch)
    if not whole or whole % count:
        raise ValueError("a batch of %d does not divide by %d" % (whole, count))
    for first in range(0, whole, whole // count):
        yield piece(batch, first, first + whole // count)


'''


def edit(change, source, pieces):
    """Puts the loops into a file; how many."""
    runs = [run for run in (_run_of(source, step) for step in code.steps(source)) if run is not None]
    if not runs:
        return 0
    edits = change.edits(source)
    helper, kept = code.free_name(source, "in_pieces"), code.free_name(source, "whole")
    for run in runs:
        run.edit(edits, helper, kept, pieces)
        change.note(wrap.place_of(source, run.statements[0]), "the batch (%s) comes in %d pieces" % (run.words, pieces))
    wrap.insert_helper(edits, _HELPER.replace("in_pieces", helper))
    return len(runs)


class _Run:
    """The statements of one block that read a batch, up to the backward pass."""

    def __init__(self, source, step, batch, statements, handed):
        self.source = source
        self.step = step
        self.batch = batch  # names
        self.handed = handed  # parameters, which the next turn of the loop reads again
        self.statements = statements
        self.words = ", ".join(batch)

    def edit(self, edits, helper, kept, pieces):
        """The loop, what zeroes gradients in front of it, and the whole batch behind it where it is read again."""
        first, text = self.statements[0], self.source.of
        target = self.words if len(self.batch) == 1 else "(%s)" % self.words
        again = self._is_read_again()
        if again:
            edits.insert_before(first, "%s = %s" % (kept, target))
            block = self.source.block(first)
            behind = block.index(self.statements[-1]) + 1
            if behind == len(block):
                raise Conflict("nothing stands behind the backward pass of line %d" % first.lineno)
            edits.insert_before(block[behind], "%s = %s" % (target, kept))
        for statement in self.statements:
            if code.method_statement(statement, "zero_grad"):
                edits.remove(statement)
                edits.insert_before(first, text(statement))
        edits.wrap(self.statements, "for %s in %s(%s, %d):" % (self.words, helper, target, pieces))
        loss = self.step.loss
        if loss is not None and not self._is_sum(loss):
            simple = isinstance(loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            divided = "%s / %d" % (text(loss) if simple else "(%s)" % text(loss), pieces)
            edits.replace(loss, "(%s)" % divided if loss is self.step.call.func.value else divided)

    def _is_read_again(self):
        if self.handed:
            return True
        end = self.statements[-1].end_lineno
        scope = self.source.scope(self.statements[0])
        return any(isinstance(node, ast.Name) and node.id in self.batch and isinstance(node.ctx, ast.Load) and
                   node.lineno > end for node in ast.walk(scope))

    def _is_sum(self, loss):
        """Written as a sum over the batch. What is not seen here is seen by pace.py."""
        made = [statement.value for statement in self.statements if isinstance(statement, ast.Assign)
                and code.stored(statement) & code.names(loss)]
        return any(map(_is_written_sum, [loss, *made[-1:]]))


def _is_written_sum(node):
    """`x.sum()`, `lossof(..., reduction="sum")`, and such divided by a number or by the batch's size, but not by the pieces' own."""
    if isinstance(node, ast.UnaryOp):
        return _is_written_sum(node.operand)
    if isinstance(node, ast.BinOp):
        known = isinstance(node.right, ast.Constant) or _is_batch_size(node.right)
        return _is_written_sum(node.left) and (known or not isinstance(node.op, ast.Div))
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and not node.args and not node.keywords:
        return True
    return any(word.arg == "reduction" and getattr(word.value, "value", None) == "sum" for word in node.keywords)


def _run_of(source, step):
    """None where the batch is not drawn here, or where its pieces would be no parts of the whole."""
    if step.statement not in step.block or not isinstance(step.statement, ast.Expr):
        return None
    drawn = _drawn(source, step.statement)
    batch = [name for statement in drawn for name in _targets(statement)]
    handed = not batch
    if handed:
        batch = _handed(source, step)
    if not batch:
        return None
    begin = max((step.block.index(each) + 1 for each in drawn if each in step.block), default=0)
    for earlier in code.steps(source):  # the same batch may have had its update before
        if earlier.statement in step.block[begin:step.index]:
            begin = step.block.index(earlier.statement) + 1
    reads = [index for index in range(begin, step.index) if code.names(step.block[index]) & set(batch)]
    if not reads or _is_carried(step, drawn):
        return None
    statements = step.block[reads[0]:step.index + 1]
    if not _may_repeat(source, statements, set(batch)):
        return None
    line = source.scope(step.statement).lineno if handed else drawn[0].lineno
    _check(statements, set(batch), _derived(source, drawn, line, set(batch), statements[0]))
    return _Run(source, step, batch, statements, handed)


def _handed(source, step):
    """Parameters on which a function updates again and again in a counted loop: the pieces of a loader would get all of these updates each."""
    scope = source.scope(step.statement)
    if not isinstance(step.loop, ast.For) or not _is_count(source, step.loop.iter) or not isinstance(scope, code.FUNCTIONS):
        return []
    if step.loop.body is not step.block or not any(code.has_call(each, "step") for each in step.block[step.index + 1:]):
        return []
    own = [each.arg for each in scope.args.posonlyargs + scope.args.args + scope.args.kwonlyargs]
    if any(word in name.lower() for name in own for word in _NO_ROWS):
        return []
    calls = [node for each in step.block[:step.index] for node in ast.walk(each) if isinstance(node, ast.Call)]
    given = {value.id for call in calls for value in [*call.args, *(word.value for word in call.keywords)] if isinstance(value, ast.Name)}
    return [name for name in own if name in given - code.stored(scope) and name != "self"]


def _is_carried(step, drawn):
    """What is drawn once in front of the loop, and bound again in it, is a state."""
    outside = [each for each in drawn if step.loop is not None and each.lineno < step.loop.lineno]
    return any(set(_targets(each)) & code.stored(step.loop) for each in outside)


def _check(statements, batch, derived):
    """Raises Conflict where something is read that was made of the whole batch, or by a part of it before."""
    made = set()
    for statement in statements:
        own = code.stored(statement) if hasattr(statement, "body") else set()
        if code.names(statement) & derived - made - batch - own and not _is_logging(statement):
            raise Conflict("line %d reads what was made of the whole batch" % statement.lineno)
        made |= code.stored(statement)


def _is_logging(statement):
    """Only calls something, and keeps nothing of it; nothing is differentiated there."""
    return isinstance(statement, ast.Expr) and not code.has_call(statement, "backward", "manual_backward")


def _drawn(source, statement):
    """Statements in front, of this block and of those around it, that draw the batch."""
    found, node = [], statement
    while isinstance(node, ast.stmt):
        block = source.block(node)
        before = block[:block.index(node)] if node in block else []
        found[:0] = [each for each in before if _draws(source, each) and not _is_called(source, each)]
        node = source.parents.get(node)
        if isinstance(node, (ast.For, ast.AsyncFor)) and not _is_count(source, node.iter):
            return []  # a loop over a loader
        if isinstance(node, code.FUNCTIONS) or isinstance(node, ast.ClassDef):
            break
    return found


def _is_count(source, node):
    """range(...), with a progress bar or not."""
    if not isinstance(node, ast.Call):
        return False
    name = code.last(node.func)
    return name in _COUNTS or (name in _BARS and bool(node.args) and _is_count(source, node.args[0]))


def _draws(source, statement):
    """`names = call`, where the call's name, or what it is given, says that it makes a batch."""
    call = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "float", "long"):
        call = call.func.value
    if not isinstance(call, ast.Call) or not _targets(statement):
        return False
    name = (code.last(call.func) or "").lower()
    if (code.last(call.func) or "A")[0].isupper() or name in _NO_SAMPLES or any(word in name for word in _NO_BATCHES):
        return False
    if name == "next":
        return source.above(statement, *code.LOOPS) is None
    values = call.args + [word.value for word in call.keywords]
    sizes = [each for value in values for each in (value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value])]
    if name in _RANDOM:
        sizes = sizes[2:3] if name == "randint" and len(call.args) > 2 else sizes[:3]
        return any(_is_batch_size(each) or _is_many(each) for each in sizes[:1] or sizes)
    named = "batch" in name or any(word.arg and "batch" in word.arg for word in call.keywords)
    return named or any(_is_batch_size(each) for each in sizes) or (name == "sample" and any(map(_is_many, sizes)))


def _is_batch_size(node):
    name = (code.last(node) or "").lower()
    return name in ("bs", "bsz") or ("batch" in name and "size" in name)


def _is_many(node):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def _is_called(source, statement):
    """What a statement binds is called later, or asked for its next value: a function, a model or an iterator, and no batch."""
    names = set(_targets(statement))
    for call in [node for node in ast.walk(source.scope(statement)) if isinstance(node, ast.Call)]:
        asked = call.args[0] if code.last(call.func) in ("next", "iter") and call.args else call.func
        if isinstance(asked, ast.Attribute) and asked.attr in ("__next__", "__iter__"):
            asked = asked.value
        if isinstance(asked, ast.Name) and asked.id in names:
            return True
    return False


def _targets(statement):
    target = statement.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else []


def _may_repeat(source, statements, batch):
    """Whether statements may run once for each piece: they do not update, leave, draw, or count on what the last piece left."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    if any(isinstance(node, _LEAVES) for node in nodes) or any(_draws(source, each) for each in statements):
        return False
    if any(isinstance(node, ast.Subscript) and code.last(node.value) in batch and _takes_samples(node.slice) for node in nodes):
        return False
    if any(isinstance(node, ast.Call) and code.last(node.func) in _OF_ALL for node in nodes):
        return False
    if any(code.has_call(each, "step", "backward", "manual_backward") for each in statements[:-1]):
        return False
    if any(code.has_call(each, "zero_grad") and not code.method_statement(each, "zero_grad") for each in statements):
        return False
    made = set()
    for statement in statements:
        if not isinstance(statement, ast.AugAssign):
            if code.names(statement) & _made_in(statements) - made - batch - code.stored(statement):
                return False  # of the piece before
            if isinstance(statement, ast.Assign) and code.names(statement) & code.stored(statement) - made - batch:
                return False
        made |= code.stored(statement)
    return True


def _takes_samples(index):
    """x[a:b] and x[some], but not x["key"], x[0] or x[:, 1:]: samples are counted from the batch's first."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    if isinstance(first, ast.Slice):
        return any(part is not None for part in (first.lower, first.upper, first.step))
    return not isinstance(first, ast.Constant)


def _made_in(statements):
    return set().union(*(code.stored(each) for each in statements if not isinstance(each, ast.AugAssign)))


def _derived(source, drawn, line, batch, first):
    """Names that hold something made of the whole batch when the first of these statements is reached."""
    found = set()
    for node in sorted(ast.walk(source.scope(first)), key=lambda node: getattr(node, "lineno", 0)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and line < node.lineno < first.lineno:
            if node not in drawn and code.names(node) & (batch | found):
                found |= code.stored(node)
    return found - batch
