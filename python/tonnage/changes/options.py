# SPDX-License-Identifier: Apache-2.0
"""The options that a program declares for its command line, read where it declares them.

argparse and what is made of it (transformers' HfArgumentParser, simple-parsing, tyro), click and typer, and scripts that set
globals of theirs from `--name=value` (nanoGPT's configurator); what other libraries read is in parsers.py. Parsers of
something else than the program's command line, and those of launchers, are not the program's. Options that are hidden or
called deprecated are left out.
"""

import ast
import functools
import sys

from _tonnage_guest import imports

from . import parsers, results
from .option import LAUNCHERS, is_given, kind_of, literal, make


def watch(use):
    """use(library, [Option, ...]) each time that the program has read its command line. What cannot be read of one library takes
    nothing away from the others."""
    for name, patch in (("argparse", _watch_argparse), ("click.core", _watch_click), ("typer._click.core", _watch_click)):
        guard = results.Change(name, None, None)
        imports.watch(name, guard.guarded(patch(guard, functools.partial(use, name))))
    parsers.watch(use)


# ---- argparse ----


def _watch_argparse(change, use):
    def look(parser, given, namespace, frame):
        if _is_the_programs(given, frame):
            use([option for option in (_of_action(action, namespace) for action in parser._actions) if option is not None])

    def patch(module):
        original = module.ArgumentParser.parse_known_args

        @functools.wraps(original)
        def parse_known_args(self, args=None, namespace=None, **kwargs):
            given = None if args is None else list(args)
            result = original(self, args if given is None else given, namespace, **kwargs)
            change.guarded(look)(self, given, result[0], sys._getframe(1))
            return result

        module.ArgumentParser.parse_known_args = parse_known_args

    return patch


def _is_the_programs(given, frame):
    """False for a parser of something else than the command line, and for a launcher's."""
    if given is not None and not is_given(given):
        return False
    while frame is not None and frame.f_globals.get("__name__") in ("argparse", "transformers.hf_argparser"):
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "") + "." if frame is not None else ""
    return not name.startswith(LAUNCHERS)


def _of_action(action, namespace):
    import argparse

    help_text = action.help if isinstance(action.help, str) else ""
    if not action.option_strings or help_text == argparse.SUPPRESS or "deprecated" in help_text.lower():
        return None
    value = getattr(namespace, action.dest, None)
    if isinstance(action, argparse._StoreFalseAction):
        return None
    if action.nargs == 0:
        kind = "flag" if isinstance(value, bool) or value is None else None
    elif action.nargs == "?" and isinstance(action.const, bool):
        kind = "flag"
    elif action.nargs not in (None, "?"):
        kind = None
    else:
        kind = kind_of(value, action.type)
    if kind is None:
        return None
    spellings = [name for name in action.option_strings if not name.startswith("--no-") and not name.startswith("--no_")]
    return make(action.dest, spellings, kind, action.choices, value)


# ---- click, typer ----


def _watch_click(change, use):
    def look(command, context):
        use([option for option in (_of_parameter(parameter, context) for parameter in command.params)
             if option is not None])  # fmt: skip

    def patch(module):
        original = module.Command.parse_args

        @functools.wraps(original)
        def parse_args(self, ctx, args):
            result = original(self, ctx, args)
            if not (getattr(self.callback, "__module__", None) or "").startswith(LAUNCHERS):
                change.guarded(look)(self, ctx)
            return result

        module.Command.parse_args = parse_args

    return patch


def _of_parameter(parameter, context):
    def has(name):
        return getattr(parameter, name, False)

    value, read = context.params.get(parameter.name), has("type")
    if not parameter.opts or not parameter.opts[0].startswith("-") or parameter.nargs != 1:
        return None
    if has("hidden") or has("multiple") or has("deprecated"):
        return None
    whole = {"integer": int, "float": float}.get((getattr(read, "name", None) or "").split(" ")[0])  # "integer range"
    kind = "flag" if has("is_flag") else kind_of(value, whole)
    return make(parameter.name, parameter.opts, kind, getattr(read, "choices", None), value) if kind else None


# ---- globals of the script that its command line sets ----


def configured(tree, read):
    """The options of a script's tree that runs a file which sets the script's globals from the command line; read(path)
    gives a file's text, or None. [] for any other script."""
    number = next((at for at, statement in enumerate(tree.body) if _runs_configurator(statement, read)), None)
    if number is None:
        return []
    found = {}
    for statement in tree.body[:number]:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            value = literal(statement.value)
            if value is not None and not statement.targets[0].id.startswith("_"):
                found[statement.targets[0].id] = value
    return [_configured(name, value) for name, value in found.items()]


def _configured(name, value):
    word = "--" + name
    for given in sys.argv[1:]:
        if given.startswith(word + "="):
            try:
                value = ast.literal_eval(given[len(word) + 1:])
            except (SyntaxError, ValueError):
                value = given[len(word) + 1:]
    return make(name, (word,), kind_of(value), None, value, equals=True)


def _runs_configurator(statement, read):
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "exec":
            for opened in ast.walk(node):
                if isinstance(opened, ast.Call) and getattr(opened.func, "id", None) == "open" and opened.args:
                    path = literal(opened.args[0])
                    text = read(path) if isinstance(path, str) else None
                    if text and "sys.argv" in text and "globals()" in text:
                        return True
    return False
