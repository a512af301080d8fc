# SPDX-License-Identifier: Apache-2.0
"""What the program's text hands to a library's trainer: `Trainer(model, folder, train_batch_size=32)`. Where the library makes the batches,
these arguments are the program's own options, and its text is the file that they stand in: `file:train.py:Trainer.train_batch_size=8`.

An argument is read where it is a number, a name of the module that is one, or what the library declares as its default. PyTorch's own
loaders and optimizers, and the trainers that arguments.py knows, are others' to change.
"""

import ast
import collections
import inspect
import os
import re
import sys

from . import code, meaning, rewrite
from .option import FILE, kind_of, make, shown_path

_ROLES = ("batch", "total", "accumulation", "chunks", "checkpointing")
_OTHERS = {"torch", "torchvision", "torchaudio", "transformers", "lightning", "pytorch_lightning", "accelerate", "argparse"}

_IMPORT = re.compile(r"(?m)^\s*(?:from\s+(\w+)|import\s+([\w.][^\n#;]*))")

_calls = {}  # path -> [("Trainer", call)] of the program's files, in the order in which they were read
_count = collections.Counter()  # (path, "Trainer") -> how many such calls
_known = {}  # a call -> its options, once what it calls is there
_modules = [None, {}]  # how many modules and files there were, and path -> module of those of the files
_looked = [None, []]  # state at the last lookup (known calls, names in their modules), and the options found then


def collect(change, text):
    """Notes the calls of a file (rewrite.add); nothing is changed."""
    if any(letter in text.path for letter in " \t:=+,"):
        return  # such a path cannot stand in a value
    if not _imports_others(text):
        return
    names = [(_dotted(node.func), node) for node in text.calls()]
    _calls[text.path] = [(name, call) for name, call in names if name]
    _count.update((text.path, name) for name, _ in names if name)


def _imports_others(text):
    """True where a file names a module that may be a library's whose trainers are told here."""
    own = text.path.split(os.sep)
    for first, names in _IMPORT.findall(text.text):
        tops = [first] if first else [name.split()[0].partition(".")[0] for name in names.split(",") if name.strip()]
        if any(top not in own and top not in _OTHERS and top not in sys.stdlib_module_names for top in tops):
            return True
    return False


def options():
    """[[Option, ...], ...] of the calls that are known by now, what has most of them first: the program's modules are looked into, and they
    are gone when it has ended."""
    modules = _modules_of_files()
    state = len(_known), sum(len(vars(module)) for module in modules.values())
    if state != _looked[0]:
        for path, module in modules.items():
            for name, call in _calls[path]:
                function = _function(module, name) if call not in _known else None
                if function is not None:
                    _known[call] = _of_call(path, name, call, module, function) if _count[path, name] == 1 else []
        _looked[:] = state, sorted(filter(None, _known.values()), key=len, reverse=True)
    return _looked[1]


def _modules_of_files():
    if _modules[0] != (len(sys.modules), len(_calls)):
        _modules[:] = (len(sys.modules), len(_calls)), {}
        for module in list(sys.modules.values()):
            file = getattr(module, "__dict__", {}).get("__file__")  # what a lazy module would import for it is left alone
            if isinstance(file, str) and os.path.abspath(file) in _calls:
                _modules[1].setdefault(os.path.abspath(file), module)
    return _modules[1]


def edit(change, path, values):
    """The edits of a file in which calls have other values. values: {"Trainer.train_batch_size": "8"}."""
    wanted = os.path.realpath(path)

    def look(change, text):
        if os.path.realpath(text.path) != wanted:
            return
        edits = change.edits(text)
        for key, value in values.items():
            name, _, argument = key.rpartition(".")
            calls = [node for node in text.calls() if _dotted(node.func) == name]
            if len(calls) != 1:
                change.cannot("%s has no call of %s, or several" % (path, name))
                return
            code.set_keyword(edits, calls[0], argument, value)
        change.note({"file": text.path, "line": calls[0].lineno}, ", ".join("%s=%s" % pair for pair in values.items()))
        change.effect()

    rewrite.add(change, look)


def _dotted(function):
    """"a.b" of such a text, or None."""
    names = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(names)]) if isinstance(function, ast.Name) else None


# ---- what a call may be given ----


def _of_call(path, name, call, module, function):
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    given = {word.arg: word.value for word in call.keywords}
    found = []
    for argument, default in _declared(function, len(call.args)).items():
        value = _value(module, given[argument]) if argument in given else default
        kind = kind_of(value)
        if kind not in ("int", "bool") or None in given and argument not in given:
            continue
        key = "%s.%s" % (name, argument)
        option = make(key, ("%s%s:%s" % (FILE, shown_path(path), key),), kind, None, value, equals=True)
        if meaning.role(option) in _ROLES:
            found.append(option)
    return found


def _value(module, node):
    """What an argument's text says, or None: a literal, or a name of the module."""
    if isinstance(node, ast.Constant):
        return node.value
    return vars(module).get(node.id) if isinstance(node, ast.Name) else None


def _function(module, name):
    """What a library has under this name of a module, or None. Nothing of the program is run for it."""
    first, *rest = name.split(".")
    found = vars(module).get(first)
    for word in rest:
        found = inspect.getattr_static(found, word, None) if found is not None else None
        found = getattr(found, "__func__", found)
    home = getattr(found, "__module__", None)
    if not (inspect.isclass(found) or inspect.isfunction(found)) or not isinstance(home, str) or _is_known(found, home):
        return None
    file = getattr(sys.modules.get(home), "__file__", None)
    return found if file and not _is_users(file) else None


def _is_known(function, home):
    import torch

    top = home.partition(".")[0]
    loader = inspect.isclass(function) and issubclass(function, torch.utils.data.DataLoader)
    return loader or top in _OTHERS or top in sys.stdlib_module_names


def _is_users(file):
    from _tonnage_guest import origin

    return origin.is_users(file)


def _declared(function, positional):
    """{name: default} of the arguments that may be given by name and that so many by position leave; of a class with those of its bases
    that its own hands on."""
    kinds = [each for each in function.__mro__ if "__init__" in vars(each)] if inspect.isclass(function) else [function]
    found, taken = {}, None
    for each in kinds:
        try:
            parameters = list(inspect.signature(each.__init__ if inspect.isclass(each) else each).parameters.values())
        except (TypeError, ValueError):
            break
        by_place = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        if taken is None:
            taken = set(by_place[:positional + inspect.isclass(each)])
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and parameter.name not in taken:
                found.setdefault(parameter.name, parameter.default if parameter.default is not parameter.empty else None)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return found
