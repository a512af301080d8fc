# SPDX-License-Identifier: Apache-2.0
"""Attention that a program writes out by hand, read from its text:

    scores = q @ k.transpose(-2, -1) * scale        `matmul`, `bmm`, `einsum`; scaled in one statement or in the next
    scores = scores.masked_fill(mask == 0, -inf)    or `scores + mask`; also under an `if`
    weights = dropout(softmax(scores, dim=-1))      in one statement or in several; modules of the class, too; cast to 32 bits and back
    out = weights @ v                               or `v @ weights.transpose(-2, -1)`

`find` gives an Attention where this is all that is done with scores and weights: what is kept, returned or printed is left alone.
Pure functions over Source. What torch.nn.functional.scaled_dot_product_attention takes: its documentation, PyTorch 2.11.
"""

import ast
import re

from . import code, dimensions

_FUNCTIONS = ("F", "torch", "functional", "nn.functional", "torch.nn.functional")
_TYPES = ("float", "double", "half", "bfloat16", "float16", "float32", "float64", "dtype")
_INFINITE = re.compile(r"-?\s*(?:float\(\s*['\"][-+]?inf(?:inity)?['\"]\s*\)|(?:torch|math|np|numpy)\.(?:inf|Inf))", re.IGNORECASE)


class Unlike(Exception):
    """The text does something else with scores or weights."""


class Attention:
    """One place where attention is computed. Nodes are of the source; texts are Python."""

    def __init__(self, product):
        self.product = product  # the node that stands for the result
        self.removed = []  # statements that go
        self.q = self.k = self.v = None  # texts, each (..., length, size)
        self.out = "%s"  # how the result is made of what the function returns
        self.scale = []  # texts that multiply the scores
        self.masks = []  # (statement, or None where it is always done; text of attn_mask)
        self.dropout = None  # text of dropout_p
        self.rank = None  # of q, where it is known
        self.made = None  # the statement that makes the scores


def find(source):
    """[Attention, ...] of a file, in the order of the text."""
    found = []
    for call in _softmaxes(source):
        try:
            softmax = _softmax_of(source, call)
            if softmax is not None and not _has_function_beside(source, call):
                found.append(_read(source, call, *softmax))
        except Unlike:
            pass
    return found


def _softmaxes(source):
    """The calls that may be one: some forty changes look at each file, and most have none."""
    if "softmax" not in source.text and "Softmax" not in source.text:
        return []
    modules = {target.attr for node in source.all(ast.Assign) if isinstance(node.value, ast.Call) and code.last(node.value.func) == "Softmax"
               for target in node.targets if isinstance(target, ast.Attribute)}
    return [call for call in source.calls() if code.last(call.func) in modules | {"softmax"}
            or isinstance(call.func, ast.Call) and code.last(call.func.func) == "Softmax"]


def _has_function_beside(source, call):
    """True in one branch of an `if` whose other branch calls the function: the program chooses it itself where torch has it."""
    branch = source.above(call, ast.If)
    here = source.statement(call)
    other = [] if branch is None else branch.orelse if here in branch.body else branch.body if here in branch.orelse else []
    return any(isinstance(node, ast.Call) and code.last(node.func) == "scaled_dot_product_attention" for part in other for node in ast.walk(part))


def _read(source, call, scores, dim):
    product, dropouts, statements = _upwards(source, call)
    one = Attention(product)
    one.removed += statements
    _take_dropouts(source, one, dropouts)
    _downwards(source, one, scores, source.statement(call))
    _take_values(source, one)
    if one.rank not in (None, 3, 4) or len(one.masks) > 1 or dim not in (-1, (one.rank or 0) - 1):
        raise Unlike
    _check_names(source, one, call)
    return one


# ---- from the softmax to the product ----


def _upwards(source, node):
    """(the node that takes the weights, [calls of dropout], [statements that only made them])."""
    dropouts, statements = [], []
    first = source.statement(node)
    while True:
        parent = source.parents.get(node)
        if _dropped(source, parent) is node:
            dropouts.append(parent)
            node = parent
        elif _cast(source.parents.get(parent)) is node:  # by a method of it, which is called
            node = source.parents[parent]
        elif isinstance(parent, ast.Assign) and parent.value is node:
            statements.append(parent)
            node = _next_use(source, parent, first)
        elif isinstance(parent, (ast.BinOp, ast.Call, ast.Attribute)):
            return node, dropouts, statements
        else:
            raise Unlike


def _next_use(source, statement, first):
    """Where the name that a statement binds is read next, in the same block. That nothing else reads it is seen at the end."""
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        raise Unlike
    name, scope, block = statement.targets[0].id, source.scope(statement), source.block(first)
    later = [node for node in _names_of(source, scope, name) if node.lineno > statement.end_lineno and isinstance(node.ctx, ast.Load)]
    if statement not in block or not later or source.statement(later[0]) not in block or source.scope(later[0]) is not scope:
        raise Unlike
    return later[0]


def _is_bound(source, node, block):
    """True where a name is bound anew by a statement of a block."""
    statement = source.statement(node)
    return isinstance(node.ctx, ast.Store) and statement in block and node.id not in code.names(statement)


def _names_of(source, scope, name):
    nodes = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


# ---- softmax, casts and dropout ----


def _cast(call):
    """What a call gives in another type, or None: the function computes its softmax in 32 bits at least, and gives the type of q."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
        return None
    name, types = call.func.attr, [code.last(argument) for argument in call.args]
    casts = name in _TYPES and not types or name == "type_as" or name in ("to", "type") and len(types) == 1 and types[0] in _TYPES
    return call.func.value if casts else None


def _module(source, node, kind):
    """The call that makes `self.x` in the class that a node stands in, where it is a module of that kind; or None."""
    if not isinstance(node, ast.Attribute) or getattr(node.value, "id", None) != "self":
        return None
    holder = node
    while holder is not None and not isinstance(holder, ast.ClassDef):
        holder = source.parents.get(holder)
    made = [statement.value for statement in ast.walk(holder or ast.Pass()) if isinstance(statement, ast.Assign)
            and any(code.dotted(target) == "self." + node.attr for target in statement.targets)]
    return made[0] if len(made) == 1 and isinstance(made[0], ast.Call) and code.last(made[0].func) == kind else None


def _softmax_of(source, call):
    """(what a softmax is taken of, its dimension: -1, 2 or 3), or None."""
    module = call.func if isinstance(call.func, ast.Call) and code.last(call.func.func) == "Softmax" else _module(source, call.func, "Softmax")
    arguments, told = list(call.args), call
    if module is not None:
        inner, arguments, told = arguments.pop(0) if len(arguments) == 1 else None, module.args, module
    elif code.last(call.func) != "softmax" or not {word.arg for word in call.keywords} <= {"dim", "dtype"}:
        return None
    elif isinstance(call.func, ast.Attribute) and code.dotted(call.func.value) not in _FUNCTIONS:
        inner = call.func.value if getattr(call.func.value, "id", None) != "self" else None
    else:
        inner = arguments.pop(0) if arguments else None
    word = code.keyword(told, "dim")
    dim = _number(word.value if word is not None else arguments[0] if arguments else None)
    return (inner, dim) if inner is not None and dim in (-1, 2, 3) else None


def _number(node):
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def _dropped(source, call):
    """What a call of dropout takes, or None."""
    if not isinstance(call, ast.Call) or not call.args:
        return None
    if code.last(call.func) == "dropout" and code.dotted(call.func) in ["%s.dropout" % owner for owner in _FUNCTIONS]:
        return call.args[0]
    return call.args[0] if len(call.args) == 1 and _module(source, call.func, "Dropout") is not None else None


def _take_dropouts(source, one, calls):
    if len(calls) > 1:
        raise Unlike
    for call in calls:
        if _module(source, call.func, "Dropout") is not None:
            module = source.of(call.func)
            one.dropout = "%s.p if %s.training else 0.0" % (module, module)
            continue
        words = {word.arg: source.of(word.value) for word in call.keywords}
        words.update(zip(("p", "training"), map(source.of, call.args[1:])))
        if set(words) - {"p", "training"}:
            raise Unlike
        one.dropout = words.get("p", "0.5")
        if words.get("training", "True") != "True":
            one.dropout = "%s if %s else 0.0" % (one.dropout, words["training"])


# ---- from the softmax down to q and k ----


def _downwards(source, one, node, statement):
    """Reads an expression of the scores: scaled, masked, by name or the product itself."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            node = _take_scale(source, one, node, statement)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not _is_product(source, node.right, statement):
            _take_mask(one, None, source.of(node.right))
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "masked_fill":
            _take_fill(source, one, None, node)
            node = node.func.value
        elif _cast(node) is not None:
            node = _cast(node)
        elif isinstance(node, ast.Name):
            node, statement = _made_by(source, one, node.id, statement)
        else:
            one.made = statement
            _take_scores(source, one, node)
            return


def _take_scale(source, one, node, statement):
    """Notes a factor; returns what it multiplies."""
    inner, factor = node.left, node.right
    if isinstance(node.op, ast.Mult) and _is_product(source, factor, statement) and not _is_product(source, inner, statement):
        inner, factor = factor, inner
    if _module(source, factor, "Parameter") is not None:  # the function takes a number
        raise Unlike
    text = source.of(factor)
    one.scale.append("1 / (%s)" % text if isinstance(node.op, ast.Div) else text)
    return inner


def _is_product(source, node, statement):
    """True for a matrix product, and for the name of one."""
    if isinstance(node, ast.Name):
        values = [made.value for made in ast.walk(source.scope(statement)) if isinstance(made, ast.Assign) and node.id in code.stored(made)]
    else:
        values = [node]
    return any(isinstance(part, ast.MatMult) or isinstance(part, ast.Call) and code.last(part.func) in ("matmul", "bmm", "einsum")
               for value in values for part in ast.walk(value))


def _made_by(source, one, name, statement):
    """(the expression, the statement) that binds a name last before a statement; what happens to it in between is noted."""
    block, scope = source.block(statement), source.scope(statement)
    before = [node for node in _names_of(source, scope, name) if node.lineno < statement.lineno]
    seen = []
    for node in reversed(before):
        here = source.statement(node)
        if here in seen:
            continue
        seen.append(here)
        if isinstance(here, ast.Assign) and len(here.targets) == 1 and isinstance(here.targets[0], ast.Name) and here in block:
            one.removed.append(here)
            return here.value, here
        _take_step(source, one, name, here, block)
    raise Unlike


def _take_step(source, one, name, here, block):
    """A statement that changes the scores in place, or under an `if`."""
    outer = here
    while outer not in block:
        outer = source.parents.get(outer)
        if not isinstance(outer, (ast.If, ast.With)):
            raise Unlike
    value = here.value if isinstance(here, (ast.Assign, ast.Expr, ast.AugAssign)) else None
    if isinstance(here, ast.AugAssign) and getattr(here.target, "id", None) == name:
        if isinstance(here.op, ast.Add):
            _take_mask(one, here, source.of(value))
        elif isinstance(here.op, (ast.Mult, ast.Div)) and here in block:
            one.removed.append(here)
            one.scale.append("1 / (%s)" % source.of(value) if isinstance(here.op, ast.Div) else source.of(value))
        else:
            raise Unlike
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and getattr(value.func.value, "id", None) == name:
        stays = isinstance(here, ast.Expr) and value.func.attr == "masked_fill_"
        bound = isinstance(here, ast.Assign) and value.func.attr in ("masked_fill", "masked_fill_")
        if not stays and not (bound and getattr(here.targets[0], "id", None) == name):
            raise Unlike
        _take_fill(source, one, here, value)
    elif (isinstance(here, ast.Assign) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
          and getattr(value.left, "id", None) == getattr(here.targets[0], "id", None) == name):
        _take_mask(one, here, source.of(value.right))
    else:
        raise Unlike


def _take_mask(one, statement, text):
    """What is added to the scores; Unlike where it is scaled afterwards."""
    if one.scale:
        raise Unlike
    one.masks.append((statement, text))


def _take_fill(source, one, statement, call):
    """masked_fill(condition, value): what is not to be seen is False where the value is -inf, and is the value else."""
    if len(call.args) != 2 or call.keywords:
        raise Unlike
    condition, value = call.args
    text = source.of(value)
    if _INFINITE.fullmatch(text.strip()) and "-" in text:
        negated = isinstance(condition, ast.Compare) and len(condition.ops) == 1 and isinstance(condition.ops[0], ast.Eq)
        if negated and getattr(condition.comparators[0], "value", None) in (0, False):
            one.masks.append((statement, "%s != 0" % _text(source, condition.left)))
        else:
            one.masks.append((statement, "%s == 0" % _text(source, condition)))
    else:
        _take_mask(one, statement, "{q}.new_zeros(()).masked_fill(%s, %s)" % (source.of(condition), text))


def _take_scores(source, one, node):
    """q @ k^T in one of its spellings."""
    if isinstance(node, ast.Call) and code.last(node.func) == "einsum":
        left, right, batch, out = _spec(node)
        row = [letter for letter in out if letter not in batch]
        inner = [letter for letter in left if letter not in out]
        if len(row) != 2 or len(inner) != 1 or out != batch + row or row[0] not in left or sorted(right) != sorted(batch + inner + row[1:]):
            raise Unlike
        one.rank = len(out)
        one.q = _ordered(source, node.args[1], left, batch + row[:1] + inner)
        one.k = _ordered(source, node.args[2], right, batch + row[1:] + inner)
        return
    q, k, is_3d = _factors(node)
    one.rank = 3 if is_3d else dimensions.of(source, q, one.made) or dimensions.of(source, k, one.made)
    one.q, one.k = _text(source, q), _swapped_text(source, k, one.rank)


def _factors(node):
    """(left, right, whether the operation takes three dimensions only) of a matrix product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right, False
    if isinstance(node, ast.Call) and code.last(node.func) in ("matmul", "bmm"):
        method = isinstance(node.func, ast.Attribute) and code.dotted(node.func.value) not in _FUNCTIONS
        operands = [node.func.value] * method + node.args
        if len(operands) == 2 and not node.keywords:
            return operands[0], operands[1], code.last(node.func) == "bmm"
    raise Unlike


def _text(source, node):
    """The text of a node, as something to call a method of."""
    text = source.of(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else "(%s)" % text


def _swapped(source, node, rank):
    """What a node swaps the last two dimensions of, or None. rank: the number of dimensions, or None."""
    if isinstance(node, ast.Attribute) and node.attr == "mT":
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or code.dotted(node.func.value) in _FUNCTIONS:
        return None
    numbers = [_number(argument) for argument in node.args]
    if node.func.attr in ("transpose", "swapaxes"):
        swaps = set(numbers) in [{-2, -1}] + ([{rank - 2, rank - 1}] if rank else [])
    else:
        swaps = node.func.attr == "permute" and numbers in ([0, 2, 1], [0, 1, 3, 2])
    return node.func.value if swaps else None


def _swapped_text(source, node, rank):
    """The text of a node with its last two dimensions swapped."""
    inner = _swapped(source, node, rank)
    return source.of(inner) if inner is not None else "%s.transpose(-2, -1)" % _text(source, node)


def _spec(call):
    """([letters of the first operand], of the second, [those of both and the result], of the result) of an einsum."""
    spec = call.args[0].value if len(call.args) == 3 and isinstance(call.args[0], ast.Constant) else None
    match = re.fullmatch(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]+)", spec.replace(" ", "")) if isinstance(spec, str) else None
    if match is None or call.keywords:
        raise Unlike
    left, right, out = map(list, match.groups())
    if any(len(set(letters)) != len(letters) for letters in (left, right, out)):
        raise Unlike
    return left, right, [letter for letter in out if letter in left and letter in right], out


def _ordered(source, node, letters, wanted):
    """The text of an operand with its dimensions in another order."""
    if sorted(letters) != sorted(wanted):
        raise Unlike
    if letters == wanted:
        return _text(source, node)
    return 'torch.einsum("%s->%s", %s)' % ("".join(letters), "".join(wanted), source.of(node))


# ---- the product with v ----


def _take_values(source, one):
    """The product that takes the weights; one.product becomes its node."""
    weights = one.product
    node = source.parents.get(weights)
    if isinstance(node, ast.Call) and code.last(node.func) == "einsum":
        _take_einsum(source, one, node, weights)
        return
    swapped = None
    if isinstance(node, ast.Attribute):
        swapped = node if node.attr == "mT" else source.parents.get(node)
        if _swapped(source, swapped, one.rank) is weights:
            node = source.parents.get(swapped)
        else:
            node, swapped = swapped, None
    left, right, is_3d = _factors(node)
    one.rank = one.rank or (3 if is_3d else None)
    if swapped is None and left is weights:
        one.v = _text(source, right)
    elif swapped is not None and right is swapped:
        one.v, one.out = _swapped_text(source, left, one.rank), "%s.transpose(-2, -1)"
    else:
        raise Unlike
    one.product = node


def _take_einsum(source, one, node, weights):
    left, right, _, out = _spec(node)
    values = node.args[2]
    if node.args[1] is not weights:
        left, right, values = right, left, node.args[1]
        if node.args[2] is not weights:
            raise Unlike
    *batch, row, column = left
    size = [letter for letter in right if letter not in left]
    if len(size) != 1 or column in out or sorted(out) != sorted(batch + [row] + size) or one.rank not in (None, len(left)):
        raise Unlike
    one.rank = len(left)
    one.v = _ordered(source, values, right, batch + [column] + size)
    ours = batch + [row] + size
    one.out = "%s" if ours == out else 'torch.einsum("%s->%s", %%s)' % ("".join(ours), "".join(out))
    one.product = node


def _check_names(source, one, softmax):
    """What is read later than before must mean the same there, and nothing else reads scores or weights."""
    last = source.statement(one.product)
    block, scope = source.block(last), source.scope(last)
    moved = [one.q, one.k] + one.scale + [text for statement, text in one.masks if statement is None]
    chain = set().union(*(code.stored(statement) for statement in one.removed), set())
    between = [node for node in ast.walk(scope) if isinstance(node, ast.stmt) and one.made.lineno <= node.lineno < last.lineno
               and node not in one.removed and not isinstance(node, (ast.If, ast.FunctionDef))]
    bound = set().union(*(code.stored(statement) for statement in between), set())
    texts = moved + [one.v] + [text for _, text in one.masks]
    if _names(moved) & bound or _names(texts) & chain or block is not source.block(one.made):
        raise Unlike
    ours = [last, source.statement(softmax)] + one.removed + [statement for statement, _ in one.masks]
    instead = _branches_instead(source, last)
    for name in chain:
        nodes = [node for node in _names_of(source, scope, name) if node.lineno >= one.made.lineno and node not in instead]
        _check_reads(source, nodes, ours, block)


def _branches_instead(source, statement):
    """The nodes of the branches that are run instead of a statement's own."""
    found = set()
    while statement is not None:
        outer = source.parents.get(statement)
        if isinstance(outer, ast.If):
            other = outer.orelse if statement in outer.body else outer.body
            found |= {node for part in other for node in ast.walk(part)}
        statement = outer
    return found


def _check_reads(source, nodes, ours, block):
    """nodes: where a name of the scores or weights stands, from the statement on that makes the scores. Each of our statements reads it once."""
    read = []
    for node in nodes:
        statement = source.statement(node)
        if statement not in ours and _is_bound(source, node, block):
            return
        if isinstance(node.ctx, ast.Load):
            if statement not in ours or statement in read:
                raise Unlike
            read.append(statement)


def _names(texts):
    return set().union(*(code.names(ast.parse(text.replace("{q}", "(0)"), mode="eval")) for text in texts), set())
