# SPDX-License-Identifier: Apache-2.0
"""What an expression of the program would be, told without running any code of the program.

Names, attributes that stand in an object's own dictionary, numbers and texts, arithmetic, comparisons and a few functions of Python's. Of `and`, `or`
and `not` the answer may be known though a part of it is not: None stands for a part that is not known.
"""

import ast
import operator
import types

_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
           ast.Mod: operator.mod}  # fmt: skip
_COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
             ast.Is: operator.is_, ast.IsNot: operator.is_not}  # fmt: skip
_NUMBERS = (int, float, bool)
_PLAIN = (*_NUMBERS, str, bytes, type(None))
_NONE = object()
_CALLED = {len: (list, tuple, dict, set, range, str), int: (int, float), min: (int, float), max: (int, float), abs: (int, float),
           range: (int,)}  # fmt: skip


class Unknown(Exception):
    """The expression has no answer without running the program."""


class Scope:
    """What names mean: parameters that are expressions of the caller, variables that are known, then globals."""

    __slots__ = ("globals", "variables", "parameters", "assigned")

    def __init__(self, globals_of_code, variables=(), parameters=(), assigned=()):
        self.globals = globals_of_code
        self.variables = dict(variables)
        self.parameters = dict(parameters)  # name -> (expression, Scope of the caller)
        self.assigned = assigned  # names that the code gives a value

    def value(self, name, varied):
        """The value of a name, as things are now where `varied` is None. Else it is that of another time: {(id of a scope, name): value} says which
        names have which value then, and what the code assigns is not known."""
        if varied is not None and (id(self), name) in varied:
            return varied[id(self), name]
        if name in self.parameters:
            expression, scope = self.parameters[name]
            return value(expression, scope, varied)
        if name in self.assigned and (varied is not None or name not in self.variables):
            raise Unknown(name)
        if name in self.variables:
            return self.variables[name]
        if name in self.globals:
            return self.globals[name]
        builtins = self.globals.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        if name in builtins:
            return builtins[name]
        raise Unknown(name)


def value(expression, scope, varied=None):
    """The value of an expression; raises Unknown."""
    kind = type(expression)
    if kind is ast.Constant:
        return expression.value
    if kind is ast.Name:
        return scope.value(expression.id, varied)
    if kind is ast.Attribute:
        return _attribute(value(expression.value, scope, varied), expression.attr)
    if kind is ast.BinOp and type(expression.op) in _BINARY:
        return _reckoned(_BINARY[type(expression.op)], value(expression.left, scope, varied), value(expression.right, scope, varied))
    if kind is ast.UnaryOp and isinstance(expression.op, ast.USub):
        return _reckoned(operator.neg, value(expression.operand, scope, varied))
    if kind is ast.Subscript:
        return _subscripted(value(expression.value, scope, varied), value(expression.slice, scope, varied))
    if kind in (ast.Tuple, ast.List, ast.Set):
        return tuple(value(part, scope, varied) for part in expression.elts)
    if kind is ast.Call:
        return _called(expression, scope, varied)
    if kind in (ast.Compare, ast.BoolOp, ast.UnaryOp):
        answer = truth(expression, scope, varied)
        if answer is not None:
            return answer
    raise Unknown(kind.__name__)


def truth(expression, scope, varied=None):
    """True or False, or None where that is not known."""
    try:
        if isinstance(expression, ast.BoolOp):
            decides = isinstance(expression.op, ast.Or)
            answers = set()
            for part in expression.values:
                answers.add(truth(part, scope, varied))
                if decides in answers:
                    return decides
            return None if None in answers else not decides
        if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Not):
            answer = truth(expression.operand, scope, varied)
            return None if answer is None else not answer
        if isinstance(expression, ast.Compare):
            return _compared(expression, scope, varied)
        found = value(expression, scope, varied)
    except Unknown:
        return None
    return bool(found) if isinstance(found, (*_PLAIN, list, tuple, dict, set, range)) else None


def _compared(expression, scope, varied):
    left = value(expression.left, scope, varied)
    for operation, right in zip(expression.ops, expression.comparators):
        right = value(right, scope, varied)
        if isinstance(operation, (ast.In, ast.NotIn)):
            answer = _is_in(left, right) is isinstance(operation, ast.In)
        else:
            answer = _related(_COMPARED[type(operation)], left, right)
        if not answer:
            return False
        left = right
    return True


def _is_in(left, right):
    if type(right) not in (list, tuple, set, frozenset, range, str, dict) or type(left) not in _PLAIN or len(right) > 1000:
        raise Unknown("in")
    if any(type(part) not in _PLAIN for part in right):
        raise Unknown("in")
    return left in right


def _reckoned(operation, *numbers):
    if any(type(part) not in _NUMBERS for part in numbers):
        raise Unknown("operands")
    return _tried(operation, numbers)


def _related(operation, left, right):
    if operation not in (operator.is_, operator.is_not) and (type(left) not in _PLAIN or type(right) not in _PLAIN):
        raise Unknown("operands")
    return _tried(operation, (left, right))


def _subscripted(owner, key):
    if type(owner) not in (dict, list, tuple, range) or type(key) not in _PLAIN:
        raise Unknown("a subscript")
    return _tried(operator.getitem, (owner, key))


def _tried(function, arguments):
    try:
        return function(*arguments)
    except Exception as error:
        raise Unknown(str(error)) from None


def _attribute(owner, name):
    """As the object's own dictionary has it, or its class: no property is asked."""
    if isinstance(owner, types.ModuleType):
        found = vars(owner).get(name, _NONE)
    else:
        own = getattr(owner, "__dict__", {})
        found = own.get(name, own.get("_modules", {}).get(name, _NONE))
        if found is _NONE:
            found = next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), _NONE)
            if isinstance(found, types.FunctionType):
                return types.MethodType(found, owner)
            if found is not _NONE and type(found) not in _PLAIN:
                raise Unknown(name)
    if found is _NONE:
        raise Unknown(name)
    return found


def _called(expression, scope, varied):
    function = value(expression.func, scope, varied)
    kinds = _CALLED.get(function) if isinstance(function, (type, types.BuiltinFunctionType)) else None
    if kinds is None or expression.keywords or any(isinstance(part, ast.Starred) for part in expression.args):
        raise Unknown("a call")
    arguments = [value(part, scope, varied) for part in expression.args]
    if any(type(part) not in (*kinds, bool) for part in arguments):
        raise Unknown("a call")
    return _tried(function, arguments)
