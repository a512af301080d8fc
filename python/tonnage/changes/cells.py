# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a notebook from changed source, as rewrite.py does with files.

IPython hands each cell to its compiler as Python, with its commands (`%magic`, `!command`) written as calls. The cell's own text is what
changes edit, and IPython makes Python of the outcome: so a patch of the cell is what was tried. A cell that is run again has a Source of each run.
"""

import ast
import functools

from _tonnage_guest import cellnames, cells, imports

from .source import Source

_UNNAMED = "<unknown>"  # what IPython parses for %%time
_run = []  # the Sources of the cells so far, in the order in which they were run


class Cell(Source):
    """A cell's text and tree. What was run before it has made names for it."""

    def __init__(self, cell, before, transform):
        self.number, self.index = cell.number, cell.index
        self.before = before  # lines before what is Python: those of a magic that has the rest run
        self.transform = transform
        self.earlier = list(_run)
        super().__init__(cell.name, cell.source)
        self.tree = self.parse(self.text)  # at once: what is no Python is said here
        python = self.python(self.text).split("\n")
        self.foreign = {number for number, line in enumerate(self.lines, 1) if number <= len(python) and line != python[number - 1]}

    def python(self, text):
        """As Source's: what IPython makes of it. Raises SyntaxError where lines do not stay where they stood."""
        body = text.replace("\r\n", "\n").split("\n")[self.before:]
        python = self.transform("\n".join(body))
        if len(python.rstrip("\n").split("\n")) != len("\n".join(body).rstrip().split("\n")):
            raise SyntaxError("a command of IPython's stands on several lines")
        return "\n" * self.before + python

    def top(self):
        """As Source's: cells share a namespace."""
        return [statement for source in self.earlier for statement in source.tree.body] + self.tree.body

    def names(self):
        """As Source's, with those of the cells before."""
        return set().union(super().names(), *(super(Cell, source).names() for source in self.earlier))


def install(tree_of, note):
    """tree_of(source) -> the tree to be run in the place of a cell's, or None; note(source) is called with each cell's first."""

    def patch(module):
        compiler = module.CachingCompiler
        original = compiler.ast_parse

        @functools.wraps(original)
        def ast_parse(self, source, filename=_UNNAMED, symbol="exec"):
            try:
                tree = _changed(source, filename, tree_of, note) if symbol == "exec" else None
            except Exception:
                tree = None  # an error of the cell's: IPython says so itself
            return tree if tree is not None else original(self, source, filename, symbol)

        compiler.ast_parse = ast_parse

    imports.watch("IPython.core.compilerop", patch)


def _changed(python, code_name, tree_of, note):
    """The tree for a piece of the current cell's code; None where it stays as it is."""
    text = _source_of(python, code_name)
    if text is None:
        return None
    note(text)
    tree = tree_of(text)
    _run.append(text)
    for node in ast.walk(tree) if tree is not None and text.before else ():
        if getattr(node, "lineno", None) is not None:
            node.lineno -= text.before
        if getattr(node, "end_lineno", None) is not None:
            node.end_lineno -= text.before
    return tree


def _source_of(python, code_name):
    """The Source of the current cell, where this is what IPython has made of it; else None."""
    cell = cells.current()
    if cell is None:
        return None
    before = cells.lines_of_magic(cell.source) if code_name == _UNNAMED else cellnames.lines_before(code_name)
    if before is None or "".join(cell.source.split("\n")[before:]).startswith("%%"):
        return None
    text = Cell(cell, before, cell.shell.transform_cell)
    return text if text.python(text.text).strip("\n") == python.strip("\n") else None
