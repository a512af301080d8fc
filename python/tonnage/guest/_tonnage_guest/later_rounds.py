# SPDX-License-Identifier: Apache-2.0
"""What the later rounds of a program will do that none has done yet, told from the text of the loop that makes them.

    for epoch in range(100):
        if epoch == 50: model.unfreeze()     new in round 51
        train(epoch)                         and the tests of `epoch` within train()
        if epoch % 5 == 0: evaluate()        nothing new after round 6

The loop is the innermost `for` over a range that the batches are taken in. A test of its variable is reckoned for each value that is still to come
(reckoned.py). Where the variable is used in any other way than in tests, in texts, as a float, or by libraries, or where a test cannot be
reckoned, the text tells nothing. What does not depend on the variable (a best result so far) it does not tell either.
"""

import ast
import collections
import inspect
import math
import types

from . import frames, guard, origin, reckoned

_MAX_VALUES = 2000  # of those to come, that tests are reckoned for
_MAX_DEPTH = 4  # functions within functions
_MAX_FUNCTIONS = 60
_MAX_FRAMES = 40
_SAYS_ONLY = {"print", "info", "debug", "warning", "log", "write", "flush", "close", "append", "add_scalar", "add_scalars", "add_histogram", "format",
              "set_description", "set_postfix", "update", "time", "join", "item", "save", "makedirs", "mkdir", "state_dict", "str", "savefig",
              "dump", "exists", "tqdm", "trange", "strftime"}  # fmt: skip
_OF_OPTIMIZERS = {"lr", "initial_lr", "lr_scale", "weight_decay", "momentum", "betas"}  # of param_group[...]
_OF_LOOPS = {"step", "set_epoch"}  # of torch's schedulers and samplers
_FETCHES = {"__next__", "__iter__"}

News = collections.namedtuple("News", "round value first test file")  # first: not even the first round did it, and it is more than to tell or to save

_trees = {}  # file -> its tree, or None


class Outlook:
    """What the rounds of a loop still bring, in values of its variable."""

    __slots__ = ("code", "loop", "name", "values", "at", "news")

    def __init__(self, code, loop, values, at):
        self.code = code  # of the function that the loop stands in
        self.loop = loop
        self.name = loop.target.id
        self.values = values  # a range
        self.at = at  # how many of them have begun
        self.news = []  # rows of News, in their order

    def goes_on(self, frame):
        """True when `frame` runs within the same loop; notes how far it has come."""
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        value = _variable(frame, self.name) if frame is not None else None
        if value is None or value not in self.values or not _is_in(self.loop, frame.f_lineno):
            return False
        self.at = self.values.index(value) + 1
        return True

    def left(self):
        """The rounds that have not begun."""
        return len(self.values) - self.at

    def next_new(self, first=False):
        """The News of the next round that does what none has done, but the very first; with `first`, what not even that has. Or None."""
        return next((news for news in self.news if news.round >= self.at and (news.first or not first)), None)

    def until_new(self, first=False):
        """The rounds until that one is over; without end where there is none."""
        news = self.next_new(first)
        return math.inf if news is None else news.round + 1 - self.at


@guard.alone
def look(frame):
    """The Outlook of the loop that the batches fetched in `frame` belong to, or None where the text tells nothing."""
    found = _round_loop(frame)
    if found is None:
        return None
    frame, loop = found
    tests = _Tests()
    scope = tests.scope(frame.f_globals, variables=frames.variables(frame), assigned=_assigned(loop))
    try:
        value, values = scope.variables.get(loop.target.id), _range_of(loop.iter, scope)
        if values is None or type(value) is not int or value not in values:
            return None
        outlook = Outlook(frame.f_code, loop, values, values.index(value) + 1)
        tests.collect(loop.body, scope, {loop.target.id}, frame.f_code.co_filename)
        if frame.f_code.co_name == "<module>":
            tests.collect_functions(frame.f_code.co_filename, scope, loop.target.id)
        outlook.news = sorted(_news(outlook, tests.rows, (id(scope), loop.target.id)), key=lambda news: news.round)
        return outlook
    except (reckoned.Unknown, RecursionError):  # names that stand for each other
        return None
    finally:
        tests.forget()


def _round_loop(frame):
    """(frame, the innermost `for` that it runs the body of), or None. What is fetched by a library's loop belongs to that."""
    fetched = True
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return None
        kind = frames.kind(frame.f_code, frame.f_globals)
        if kind is frames.USER:
            fetched = False
            loop = _enclosing(frame)
            if loop is not None:
                return (frame, loop) if isinstance(loop.target, ast.Name) else None
        elif kind is frames.LIBRARY or (kind is frames.SYSTEM and fetched):
            if not frame.f_code.co_flags & inspect.CO_GENERATOR and frame.f_code.co_name not in _FETCHES:
                return None
        frame = frame.f_back
    return None


def _enclosing(frame):
    function = _function(frame.f_code)
    inside = [node for part in function.body for node in _own_nodes(part)] if function is not None else []
    loops = [node for node in inside if isinstance(node, (ast.For, ast.While)) and _is_in(node, frame.f_lineno)]
    innermost = max(loops, key=lambda node: node.lineno, default=None)
    return innermost if isinstance(innermost, ast.For) else None


def _is_text(node):
    """True for texts, `"..." % values` and dictionaries (what is saved)."""
    percent = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return percent or isinstance(node, (ast.JoinedStr, ast.Dict))


def _is_told(value):
    """True for an expression of which nothing but a text, a progress bar or a dictionary comes."""
    return _is_text(value) or (isinstance(value, ast.Call) and _name(value.func) in _SAYS_ONLY)


def _name(function):
    return getattr(function, "attr", getattr(function, "id", None))


def _is_torchs(called):
    owner = getattr(called, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner = called
    owner = owner if isinstance(owner, (type, types.FunctionType)) else type(owner)
    return (getattr(owner, "__module__", None) or "").partition(".")[0] == "torch"


def _is_in(loop, line):
    """True for a line of a loop's body; what stands on the line of its head is taken for the head."""
    return loop.lineno < loop.body[0].lineno <= line <= loop.body[-1].end_lineno


# ---- the tests of a variable ----


class _Tests:
    """Tests that depend on the variable of a loop, in its body and in the functions that are given it."""

    def __init__(self):
        self.rows = []  # (test, what is done where it holds and where not, scope, file)
        self.followed = set()
        self.scopes = []

    def scope(self, globals_of_code, **names):
        made = reckoned.Scope(globals_of_code, **names)
        self.scopes.append(made)
        return made

    def forget(self):
        """Scopes name each other, and hold tensors of the program."""
        for scope in self.scopes:
            scope.variables.clear()
            scope.parameters.clear()

    def collect(self, body, scope, names, file, depth=0):
        """Tests of `names` in these statements. Raises reckoned.Unknown where a name is used in another way."""
        names, allowed = set(names), set()
        nodes = [node for statement in body for node in _own_nodes(statement)]
        for node in nodes:
            if isinstance(node, ast.Assign) and _mentions(node.value, names):
                if not _is_told(node.value):
                    self._derive(node, scope, names)
                allowed.update(map(id, ast.walk(node.value)))
        for node in nodes:
            if isinstance(node, (ast.If, ast.IfExp, ast.While)) and _mentions(node.test, names):
                self.rows.append((node.test, [*_listed(node.body), *_listed(node.orelse)], scope, file))
                allowed.update(map(id, ast.walk(node.test)))
            elif _is_text(node):
                allowed.update(map(id, ast.walk(node)))
            elif isinstance(node, ast.Call) and any(_mentions(part, names) for part in _arguments(node)):
                self._follow(node, scope, names, depth)
                allowed.update(id(inner) for part in _arguments(node) for inner in ast.walk(part))
        for node in nodes:
            if isinstance(node, ast.For) and _mentions(node.iter, names):
                raise reckoned.Unknown("line %d loops over it" % node.lineno)
            if isinstance(node, ast.Name) and node.id in names and id(node) not in allowed and isinstance(node.ctx, ast.Load):
                raise reckoned.Unknown("line %d uses %s" % (node.lineno, node.id))

    def collect_functions(self, file, scope, name):
        """The same in functions of a file that use the variable as a global one."""
        tree = _tree(file)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _mentions(node, {name}) and name not in _bound(node):
                inner = self.scope(scope.globals, parameters={name: (ast.Name(name, ast.Load()), scope)}, assigned=_bound(node))
                self.collect(node.body, inner, {name}, file)

    def _derive(self, node, scope, names):
        """A name that stands for an expression of the variable. What is kept elsewhere decides nothing where it is a float."""
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            if target.id in scope.parameters:
                raise reckoned.Unknown("line %d gives %s another value" % (node.lineno, target.id))
            scope.parameters[target.id] = (node.value, scope)
            names.add(target.id)
        elif not (isinstance(target, ast.Subscript) and getattr(target.slice, "value", None) in _OF_OPTIMIZERS):
            if not isinstance(reckoned.value(node.value, scope), float):
                raise reckoned.Unknown("line %d keeps it" % node.lineno)

    def _follow(self, call, scope, names, depth):
        """A function that is given the variable: of the program, its tests count; of torch, it may make tensors by it."""
        name = _name(call.func)
        try:
            called = _callee(call, scope)
        except reckoned.Unknown:
            if name in _SAYS_ONLY or name in _OF_LOOPS or isinstance(getattr(call.func, "value", None), (ast.Constant, ast.JoinedStr)):
                return
            raise
        function = _python_function(called)
        if function is None or frames.kind(function.__code__, function.__globals__) is not frames.USER:
            if name not in _SAYS_ONLY and name not in _OF_LOOPS and _is_torchs(called):
                raise reckoned.Unknown("line %d gives it to %s" % (call.lineno, name))
            return
        if depth >= _MAX_DEPTH or len(self.followed) >= _MAX_FUNCTIONS:
            raise reckoned.Unknown("too deep")
        definition = _function(function.__code__)
        if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
            raise reckoned.Unknown("no text of %s" % function.__name__)
        owner = getattr(called, "__self__", None)
        is_bound = owner is not None or isinstance(reckoned.value(call.func, scope), type)
        given = _given(call, definition.args, scope, is_bound)
        varied = {parameter for parameter, (expression, _) in given.items() if _mentions(expression, names)}
        if (function.__code__, frozenset(varied)) in self.followed:
            return
        self.followed.add((function.__code__, frozenset(varied)))
        own = {definition.args.args[0].arg: owner} if owner is not None and definition.args.args else {}
        inner = self.scope(function.__globals__, variables=own, parameters=given, assigned=_bound(definition) - set(given) - set(own))
        self.collect(definition.body, inner, varied, function.__code__.co_filename, depth + 1)


def _callee(call, scope):
    """What is called. Where that is not known, it may be a function of the program: Unknown is raised."""
    called = reckoned.value(call.func, scope)
    if isinstance(called, type):
        return called.__init__
    if not isinstance(called, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.BuiltinMethodType)):
        inside = getattr(type(called), "forward", None) or getattr(type(called), "__call__", None)
        return types.MethodType(inside, called) if isinstance(inside, types.FunctionType) else None
    return called


def _python_function(called):
    called = getattr(called, "__func__", called)
    for _ in range(_MAX_DEPTH):
        if not isinstance(called, types.FunctionType):
            return None
        if not isinstance(getattr(called, "__wrapped__", None), types.FunctionType):
            return called
        called = called.__wrapped__
    return None


def _given(call, wanted, scope, is_bound):
    """{parameter: (expression, scope)} of a call."""
    names = [part.arg for part in (*wanted.posonlyargs, *wanted.args)][is_bound:]
    if any(isinstance(part, ast.Starred) for part in call.args) or len(call.args) > len(names):
        raise reckoned.Unknown("starred")
    given = {name: (part, scope) for name, part in zip(names, call.args)}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise reckoned.Unknown("starred")
        given[keyword.arg] = (keyword.value, scope)
    return given


def _news(outlook, rows, key):
    """Yields the rounds in which a test says for the first time what it had not said."""
    values = outlook.values[:outlook.at + _MAX_VALUES]
    for test, done, scope, file in rows:
        answers = [reckoned.truth(test, scope, {key: value}) for value in values]
        if None in answers and not all(_is_of_others(test, scope, {key: value}) for value in values):
            raise reckoned.Unknown("line %d cannot be reckoned" % test.lineno)
        known = set(answers[1:outlook.at - 1])
        for number in range(outlook.at, len(answers)):
            if answers[number] not in known:
                known.add(answers[number])
                yield News(number + 1, values[number], answers[number] != answers[0] and not _says_only(done), test, file)


def _is_of_others(test, scope, varied):
    """True when what is not known of a test has nothing to do with the variable."""
    if isinstance(test, ast.BoolOp):
        return all(_is_of_others(part, scope, varied) for part in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_of_others(test.operand, scope, varied)
    return reckoned.truth(test, scope, varied) is not None or not _reaches(test, scope, next(iter(varied)))


def _reaches(expression, scope, key):
    """True when an expression depends on the variable."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            if (id(scope), node.id) == key:
                return True
            inner = scope.parameters.get(node.id)
            if inner is not None and _reaches(inner[0], inner[1], key):
                return True
    return False


def _says_only(statements):
    """True for statements that print, note or save something: no card's memory is in that."""
    return all(_is_harmless(statement) for statement in statements)


def _is_harmless(statement):
    if isinstance(statement, (ast.If, ast.For, ast.With)):
        return _says_only([*statement.body, *getattr(statement, "orelse", [])])
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if isinstance(statement, ast.Assign) and not calls and not isinstance(statement.value, (ast.Dict, ast.JoinedStr)):
        return False  # a size, a flag
    if not isinstance(statement, (ast.Assign, ast.Expr, ast.Pass)):
        return False
    return all(_name(call.func) in _SAYS_ONLY for call in calls)


# ---- texts ----


def _range_of(expression, scope):
    """The range that a loop goes through, also within tqdm; or None."""
    try:
        if isinstance(expression, ast.Call):
            called = _name(expression.func)
            if called in ("range", "trange") and expression.args:
                return range(*(reckoned.value(part, scope) for part in expression.args))
            return _range_of(expression.args[0], scope) if called == "tqdm" and expression.args else None
        found = reckoned.value(expression, scope)
    except (reckoned.Unknown, TypeError, ValueError):
        return None
    found = getattr(found, "__dict__", {}).get("iterable", found)
    return found if isinstance(found, range) else None


def _variable(frame, name):
    value = frames.variables(frame).get(name)
    return value if type(value) is int else None


def _function(code):
    """The definition that a code object was compiled from, or None."""
    tree = _tree(code.co_filename)
    if tree is None or code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            if code.co_firstlineno in (node.lineno, *(part.lineno for part in node.decorator_list)):
                return node
    return None


def _tree(file):
    if file not in _trees:
        try:
            with open(origin.absolute(file), "rb") as text:
                _trees[file] = ast.parse(text.read())
        except (OSError, SyntaxError, ValueError):
            _trees[file] = None
    return _trees[file]


def _own_nodes(statement):
    """The nodes of a statement, without those of functions and classes that it defines."""
    yield statement
    for node in ast.iter_child_nodes(statement):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _own_nodes(node)


def _mentions(tree, names):
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(tree))


def _arguments(call):
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _listed(part):
    return part if isinstance(part, list) else [part]


def _assigned(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _bound(definition):
    """The names that a function has of its own."""
    wanted = definition.args
    arguments = [*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs, *filter(None, (wanted.vararg, wanted.kwarg))]
    return {part.arg for part in arguments} | _assigned(definition)
