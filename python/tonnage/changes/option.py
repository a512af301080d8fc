# SPDX-License-Identifier: Apache-2.0
"""One option that a program declares, whatever it is read from, and how a person writes it.

Most stand on the command line. Those of configuration files and of the environment are spelled for the driver and for
switches.py: `file:PATH:key=value`, `env:NAME=value`.
"""

import ast
import collections
import os
import sys

# spellings: all names, none where it cannot be set; typed: the one that the command line has, or None; kind: "int", "float",
# "bool" (a value is given), "flag" (none is), "str"; equals: written name=value; choices: list or None; value: what it is now
Option = collections.namedtuple("Option", "name spellings typed kind equals choices value")

FILE, ENVIRONMENT = "file:", "env:"
LAUNCHERS = ("torch.distributed.", "accelerate.commands.", "deepspeed.launcher.", "fire.", "lightning.fabric.cli", "IPython",
             "ipykernel", "pytest", "_pytest", "pdb", "runpy", "torch._inductor", "triton")  # fmt: skip


def make(name, spellings, kind, choices, value, equals=False):
    """An Option; what the command line has of it is looked for."""
    typed = next((word for word in spellings for given in sys.argv[1:]
                  if given == word or given.startswith(word + "=")), None)  # fmt: skip
    listed = list(choices)[:64] if isinstance(choices, (list, tuple, set, dict, range)) else None
    return Option(name, tuple(spellings), typed, kind, equals, listed, value)


def kind_of(value, read=None):
    """What is given for an option whose value is this, or that reads a value with `read`; None: nothing that is known."""
    if isinstance(value, bool):
        return "bool"
    for kind in (int, float):
        if type(value) is kind or (value is None and read is kind):
            return kind.__name__
    return "str" if isinstance(value, str) or value is None else None


def is_given(words):
    """True for words that all stand on the program's command line: what reads them reads that."""
    return all(word in sys.argv[1:] for word in words)


def flat(values, before=""):
    """[("a.b", value), ...] of nested mappings; lists are left out."""
    found = []
    for key, value in values.items():
        name = before + str(key)
        if isinstance(value, dict):
            found += flat(value, name + ".")
        elif not isinstance(value, (list, tuple)):
            found.append((name, value))
    return found


def literal(node):
    """What a literal of a program's text, or a product of whole ones, says: 5 * 8. None for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = literal(node.left), literal(node.right)
        return left * right if type(left) is int and type(right) is int else None
    return node.value if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool, str) else None


def shown_path(path):
    """A file's path as a person names it, in the folder in which the program was started."""
    from _tonnage_guest import origin

    folder = origin.working_folder() or os.getcwd()
    return os.path.relpath(path, folder) if path.startswith(folder + os.sep) else path
