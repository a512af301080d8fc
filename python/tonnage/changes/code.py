# SPDX-License-Identifier: Apache-2.0
"""What can be read in a program's text: its training steps, calls by name, where a name is used.

A *step* is the block of statements in which a backward pass is started. Pure functions over Source.
"""

import ast

from .source import Conflict

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD", "Rprop",
              "Adafactor", "SparseAdam", "LBFGS", "Muon")
# Methods that change no more than the size or the type of a loss that is there.
_REDUCTIONS = ("mean", "sum", "squeeze", "view", "float", "to", "type")


class Step:
    """One place where a backward pass is started."""

    def __init__(self, source, call, loss, scaler):
        self.source = source
        self.call = call
        self.loss = loss  # the node of what is differentiated
        self.scaler = scaler  # dotted name of a GradScaler, or None
        self.statement = source.statement(call)
        self.block = source.block(self.statement)
        self.index = self.block.index(self.statement) if self.statement in self.block else 0
        self.loop = source.above(self.statement, *LOOPS)

    def forward(self):
        """The statements that make the loss, as one range of a block; [] when it is made elsewhere. The pass may be started in a branch
        behind them, or under a `with` that scales the loss."""
        wanted = names(self.loss) if self.loss is not None else set()
        block, statement = self.block, self.statement
        while statement in block:
            made = _makers(block[:block.index(statement)], wanted)
            outer = self.source.parents.get(statement)
            if made or not isinstance(outer, (ast.If, ast.With)):
                return made
            for item in outer.items if isinstance(outer, ast.With) else ():
                if item.optional_vars is not None and stored(item.optional_vars) & wanted:
                    wanted = wanted | names(item.context_expr)
            statement, block = outer, self.source.block(outer)
        return []

    def makes_loss(self):
        """True when the statement is this call alone, on one line, and what is differentiated is computed in it, not only scaled or reduced."""
        alone = isinstance(self.statement, ast.Expr) and self.statement.value is self.call
        one_line = self.statement.lineno == self.statement.end_lineno
        made = [call for call in ast.walk(self.loss) if isinstance(call, ast.Call)] if self.loss is not None else []
        return alone and one_line and any(not isinstance(call.func, ast.Attribute) or call.func.attr not in _REDUCTIONS for call in made)


def steps(source):
    """All steps of a file, in the order of the text."""
    found = []
    for call in calls(source, "backward", "manual_backward"):
        if not isinstance(call.func, ast.Attribute):
            continue
        target = call.func.value
        if call.func.attr == "manual_backward":
            found.append(Step(source, call, call.args[0] if call.args else None, None))
        elif isinstance(target, ast.Call) and getattr(target.func, "attr", "") == "scale" and target.args:
            found.append(Step(source, call, target.args[0], dotted(target.func.value)))
        elif call.args and _is_wrapper(dotted(target)):
            found.append(Step(source, call, call.args[0], None))
        else:
            found.append(Step(source, call, target, None))
    return found


def _makers(statements, wanted):
    """The statements from the first to the last that make what is wanted, by way of each other."""
    first = last = None
    for index in range(len(statements) - 1, -1, -1):
        if stored(statements[index]) & wanted:
            wanted = wanted | names(statements[index])
            first = index
            last = index if last is None else last
    return statements[first:last + 1] if first is not None else []


def _is_wrapper(name):
    """accelerator.backward(loss), fabric.backward(loss), torch.autograd.backward(loss), and optimizer.backward(loss) of apex"""
    last = (name or "").rpartition(".")[2].lower()
    return "accelerat" in last or "fabric" in last or "optim" in last or last in ("autograd", "engine")


def calls(source, *last_names):
    """Calls of functions whose last name is one of these."""
    if source.before_brackets.isdisjoint(last_names):
        return []
    return [call for call in source.calls() if last(call.func) in last_names]


def dotted(node):
    """`a.b.c` as text, or None for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id] + parts[::-1])


def last(node):
    """The last part of a name: `AdamW` of torch.optim.AdamW."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def names(node):
    """Names that a node reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def stored(node):
    """Names that a node binds, functions and classes inside left out."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def mentions(node, text):
    """True when a dotted name occurs in a node."""
    return any(dotted(n) == text for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))


def has_call(node, *attributes):
    """True when a method of one of these names is called in a node."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in attributes
               for n in ast.walk(node))


def method_statement(statement, *attributes):
    """The call of a statement that is nothing but `x.attribute(...)`, or None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in attributes:
        return call
    return None


def keyword(call, name):
    """The keyword argument of a call, or None."""
    return next((word for word in call.keywords if word.arg == name), None)


def set_keyword(edits, call, name, text, position=None):
    """Gives a call a keyword argument: replaces the one that is there, or the positional one, or adds it. Where the call is handed a
    mapping (`**extra`), which may have the name, too, it goes into that."""
    present = keyword(call, name)
    spread = next((word for word in reversed(call.keywords) if word.arg is None), None)
    if present is not None:
        edits.replace(present.value, text)
    elif position is not None and position < len(call.args) and not _starred(call.args[:position + 1]):
        edits.replace(call.args[position], text)
    elif spread is not None:
        edits.replace(spread.value, '{**%s, "%s": %s}' % (_operand(edits.source.of(spread.value), spread.value), name, text))
    else:
        add_argument(edits, call, "%s=%s" % (name, text))


def _operand(text, node):
    """What may stand behind `**` in a dict."""
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Dict)) else "(%s)" % text


def add_argument(edits, call, text):
    """Adds an argument behind the last one."""
    arguments = call.args + [word.value for word in call.keywords]
    arguments.sort(key=lambda node: (node.end_lineno, node.end_col_offset))
    if not arguments:
        line, column = edits.source.end(call)
        edits.insert(line, column - 1, text)
        return
    line, column = edits.source.end(arguments[-1])
    if isinstance(arguments[-1], ast.GeneratorExp) and (line, column) == edits.source.end(call):
        raise Conflict("line %d hands over a generator without parentheses" % line)
    # an argument in parentheses of its own, or a generator, ends before its last parenthesis
    close = edits.source.end(call)
    rest = edits.source.lines[line - 1][column:close[1] - 1 if close[0] == line else None]
    extra = len(rest) - len(rest.lstrip(" )")) if rest.lstrip(" ").startswith(")") else 0
    if close[0] != line and edits.source.lines[line - 1][column + extra:].strip() in (",", ""):
        if _first_of_line(edits.source, arguments[-1], call):
            comma = "" if edits.source.lines[line - 1][column + extra:].strip() == "," else ","
            where = column + extra + (1 if not comma else 0)
            edits.insert(line, where, "%s\n%s%s," % (comma, edits.source.indent(line), text))
            return
    edits.insert(line, column + extra, ", " + text)


def _first_of_line(source, node, call):
    word = source.parents.get(node)
    node = word if isinstance(word, ast.keyword) and hasattr(word, "col_offset") else node
    line, column = source.start(node)
    return line == node.end_lineno and line > call.lineno and not source.lines[line - 1][:column].strip()


def _starred(arguments):
    return any(isinstance(argument, ast.Starred) for argument in arguments)


def free_name(source, wish):
    """`wish`, or a like name that the file does not use."""
    name = wish
    while name in source.names():
        name += "_"
    return name


def need_import(edits, module):
    """Adds `import module` at the top unless the file has it under its own name."""
    for node in edits.source.top():
        if isinstance(node, ast.Import) and any(
            alias.asname is None and (alias.name == module or alias.name.startswith(module + ".") and "." not in module)
            for alias in node.names
        ):
            return
    edits.insert_at_top("import " + module)


def optimizers(source, kinds=OPTIMIZERS):
    """Calls that make an optimizer of torch."""
    found = []
    for call in calls(source, *kinds):
        name = dotted(call.func) or ""
        prefix = name.rpartition(".")[0]
        if call.args or keyword(call, "params"):
            if prefix == "" or prefix.split(".")[-1] in ("optim", "optimizer", "nn", "torch") or "optim" in prefix:
                found.append(call)
    return found


def readers_of_shards(source):
    """(scope, what it is handed) of each torch.distributed.checkpoint.load(...)."""
    package = "torch.distributed.checkpoint"
    modules, functions = {package}, set()
    for node in source.all(ast.Import, ast.ImportFrom) if source.says("distributed") else ():
        if isinstance(node, ast.Import):
            modules |= {alias.asname for alias in node.names if alias.name == package and alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module in (package, package.rpartition(".")[0]):
            for alias in node.names:
                if node.module == package and alias.name in ("load", "load_state_dict"):
                    functions.add(alias.asname or alias.name)
                elif node.module != package and alias.name == "checkpoint":
                    modules.add(alias.asname or alias.name)
    found = []
    for call in calls(source, *functions, "load", "load_state_dict"):
        owner, _, name = (dotted(call.func) or "").rpartition(".")
        word = keyword(call, "state_dict")
        handed = call.args[0] if call.args else word.value if word is not None else None
        if handed is not None and (owner in modules or not owner and name in functions):
            found.append((source.scope(call), handed))
    return found


def target_of(source, call):
    """The dotted name that a call's value is assigned to by its statement, or None."""
    statement = source.statement(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is call:
        return dotted(statement.targets[0])
    if isinstance(statement, ast.AnnAssign) and statement.value is call:
        return dotted(statement.target)
    return None
