# SPDX-License-Identifier: Apache-2.0
"""One of the user's source files and what several changes want different in it.

Each change collects its wishes in Edits; `render` writes the text with the wishes of one change, or of all, and the
line that each new line came from. Everything is placed by lines and columns of the original text, so that changes
combine in any order and a patch of one of them alone can be had.

Invariant: nothing here touches a file or knows torch. Wishes that contradict each other raise Conflict.
"""

import ast
import difflib
import functools
import io
import os
import re
import tokenize


_BEFORE_BRACKET = re.compile(r"(\w+)\s*\(")


class Conflict(Exception):
    """Two wishes, or a wish and the way a file is written, do not go together."""


class Source:
    """A file's text and tree. imported: what stands under `if __name__ == "__main__":` is not run, so nothing is found there."""

    def __init__(self, path, text, imported=False):
        self.path = path
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.foreign = set()  # lines that are no Python
        self._imported = imported
        self._names = self._inside_strings = None

    @functools.cached_property
    def tree(self):
        """What the text says. Made when it is first asked for, as all that follows from it is: most files of a large program have no word in
        them that a change looks for. Raises SyntaxError."""
        return self.parse(self.text)

    @property
    def parents(self):
        """The node around each node."""
        return self._nodes[0]

    @property
    def _by_kind(self):
        return self._nodes[1]

    @functools.cached_property
    def _nodes(self):
        parents, by_kind, not_run = {}, {}, set()
        nodes = [self.tree]
        for node in nodes:  # outer nodes first, as ast.walk gives them
            if self._imported and _asks_for_main(node):
                not_run.update(node.body)
            children = _children(node)
            nodes += children
            for child in children:
                parents[child] = node
            if node in not_run:
                not_run.update(children)
            else:
                by_kind.setdefault(type(node), []).append(node)
        return parents, by_kind

    @functools.cached_property
    def _calls(self):
        return sorted(self.all(ast.Call), key=lambda call: (call.lineno, call.col_offset))

    def python(self, text):
        """This text, or what edits have made of it, as Python, line for line."""
        return text

    def parse(self, text):
        """The tree of such a text."""
        return ast.parse(self.python(text), self.path)

    def top(self):
        """The statements that have been run in the file's namespace when its last one is."""
        return self.tree.body

    # ---- looking ----

    @functools.cached_property
    def before_brackets(self):
        """The names that stand before an opening bracket anywhere in the text: those of all functions that it defines or calls."""
        return frozenset(_BEFORE_BRACKET.findall(self.text))

    def says(self, *words):
        """False where none of these stands anywhere in the text: then nothing that is called so does."""
        return any(word in self.text for word in words)

    def all(self, *kinds):
        """The nodes of these kinds, kind by kind, each as ast.walk gives them: some forty changes look at each file."""
        return [node for kind in kinds for node in self._by_kind.get(kind, ())]

    def calls(self):
        """All calls, in the order of the text."""
        return self._calls

    def names(self):
        """The names that the file uses for anything."""
        if self._names is None:
            self._names = {node.id for node in self.all(ast.Name)} | {node.arg for node in self.all(ast.arg)}
            self._names |= {node.name for node in self.all(ast.FunctionDef, ast.ClassDef)}
            self._names |= {alias.asname or alias.name for node in self.all(ast.Import, ast.ImportFrom) for alias in node.names}
        return self._names

    def column(self, line, byte_column):
        """ast counts columns in UTF-8 bytes; this counts characters."""
        return len(self.lines[line - 1].encode("utf-8")[:byte_column].decode("utf-8", "ignore"))

    def start(self, node):
        """(line, column) of a node's first character."""
        return node.lineno, self.column(node.lineno, node.col_offset)

    def end(self, node):
        """(line, column) behind a node's last character."""
        return node.end_lineno, self.column(node.end_lineno, node.end_col_offset)

    def of(self, node):
        """The text of a node, on one line; written anew where its lines have more than what stands in them (comments, backslashes)."""
        (line, column), (end_line, end_column) = self.start(node), self.end(node)
        if line == end_line:
            return self.lines[line - 1][column:end_column]
        parts = [self.lines[line - 1][column:]] + self.lines[line:end_line - 1]
        parts.append(self.lines[end_line - 1][:end_column])
        parts = [part.strip() for part in parts]
        if any(part.endswith("\\") or any(word in part for word in ("#", '"""', "'''")) for part in parts):
            return ast.unparse(node)
        return " ".join(parts)

    def indent(self, line):
        """The white space that a line begins with."""
        text = self.lines[line - 1]
        return text[:len(text) - len(text.lstrip())]

    def statement(self, node):
        """The statement that a node belongs to."""
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(node)
        return node

    def block(self, statement):
        """The list of statements that a statement stands in."""
        parent = self.parents.get(statement)
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def above(self, node, *kinds):
        """The nearest enclosing node of these kinds, not beyond the function it stands in; or None."""
        node = self.parents.get(node)
        while node is not None and not isinstance(node, kinds):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return None
            node = self.parents.get(node)
        return node

    def scope(self, node):
        """The function, or the module, that a node stands in."""
        node = self.parents.get(node)
        while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            node = self.parents.get(node)
        return node

    def calls_at(self, line):
        """Calls whose text covers a line, the innermost last."""
        found = [call for call in self._calls if call.lineno <= line <= call.end_lineno]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset - node.end_col_offset))

    def inside_string(self, line):
        """True for lines that begin inside a string: they must not be indented."""
        if self._inside_strings is None:
            self._inside_strings = _string_lines(self.python(self.text))
        return line in self._inside_strings


class Plain(Source):
    """A file that is no Python: lines to be edited."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.foreign = self._inside_strings = set()


def _children(node):
    """The nodes right under a node, but for what a name is used for (Load, Store)."""
    found = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            if name != "ctx":
                found.append(value)
        elif isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
    return found


def _asks_for_main(node):
    """True for `if __name__ == "__main__":`."""
    test = node.test if isinstance(node, ast.If) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return {getattr(side, "id", getattr(side, "value", None)) for side in sides} == {"__name__", "__main__"}


def read(path, imported=False):
    """The Source of a file, or None if it cannot be read."""
    try:
        with tokenize.open(path) as file:
            encoding = file.encoding
        with io.open(path, encoding=encoding, newline="") as file:
            return Source(path, file.read(), imported)
    except (OSError, SyntaxError, UnicodeError, ValueError):
        return None


class Edits:
    """What one change wants different in one file."""

    def __init__(self, source):
        self.source = source
        self.spans = []  # (line, column, end line, end column, new text)
        self.before = {}  # line -> lines of text
        self.after = {}  # line -> [(indentation, lines of text)]
        self.wraps = []  # (first line, last line, header)
        self.removed = set()

    def __bool__(self):
        return bool(self.spans or self.before or self.after or self.wraps or self.removed)

    def replace(self, node, text):
        """A node's text becomes another."""
        span = self.source.start(node) + self.source.end(node) + (text,)
        if span not in self.spans:
            self.spans.append(span)

    def insert(self, line, column, text):
        """Text within a line."""
        self.spans.append((line, column, line, column, text))

    def insert_before(self, statement, *lines):
        """Lines in front of a statement, with its indentation."""
        self._alone(statement)
        first = _first_line(statement)
        self.before.setdefault(first, []).extend(self._indented(first, lines))

    def insert_after(self, statement, *lines):
        """Lines behind a statement, with its indentation."""
        self._alone(statement)
        first = _first_line(statement)
        self.after.setdefault(statement.end_lineno, []).append((len(self.source.indent(first)), self._indented(first, lines)))

    def insert_at_top(self, *lines):
        """Lines behind the module's docstring and its imports from __future__, and in front of everything else; those that are there already
        are left out."""
        body = self.source.tree.body
        index = 0
        while index < len(body) and (_is_docstring(body[index], index) or _is_future(body[index])):
            index += 1
        if index < len(body):
            there = self.before.get(_first_line(body[index]), ())
            self.insert_before(body[index], *(line for line in lines if line not in there))

    def wrap(self, statements, header):
        """Statements of one block go into a `with`."""
        for statement in (statements[0], statements[-1]):
            self._alone(statement)
        self.wraps.append((_first_line(statements[0]), statements[-1].end_lineno, header))

    def remove(self, statement):
        """A statement goes. It must not be the only one of its block."""
        self._alone(statement)
        if len(self.source.block(statement)) == 1:
            self.replace(statement, "pass")
        else:
            self.removed.update(range(_first_line(statement), statement.end_lineno + 1))

    def _indented(self, line, lines):
        indent = self.source.indent(line)
        return [indent + text if text else "" for text in lines]

    def _alone(self, statement):
        first, last = self.source.start(statement), self.source.end(statement)
        before = self.source.lines[first[0] - 1][:first[1]]
        after = self.source.lines[last[0] - 1][last[1]:].strip()
        if before.strip() or (after and not after.startswith("#")):
            raise Conflict("line %d holds more than one statement" % first[0])


def render(source, all_edits):
    """The new text, and for each of its lines the number of the original line that it stands for."""
    plan = _Plan(source, [edits for edits in all_edits if edits])
    lines, origins = [], []
    for number in range(1, len(source.lines) + 1):
        for row in plan.lines_of(number):
            for line in row.split("\n"):
                lines.append(line)
                origins.append(number)
    return source.newline.join(lines), origins


class _Plan:
    """All edits of a file, by line."""

    def __init__(self, source, all_edits):
        self.source = source
        self.spans = sorted((span for edits in all_edits for span in edits.spans), key=lambda span: span[:4])
        self.removed = set().union(*(edits.removed for edits in all_edits)) if all_edits else set()
        self.before, self.after = {}, {}
        for edits in all_edits:
            for line, rows in edits.before.items():
                self.before.setdefault(line, []).extend(rows)
            for line, rows in edits.after.items():
                self.after.setdefault(line, []).extend(rows)
        self.wraps = [wrap for edits in all_edits for wrap in edits.wraps]
        self._check()
        self.rows, self.swallowed = self._apply_spans()

    def _check(self):
        for one, two in zip(self.spans, self.spans[1:]):
            if two[:2] < one[2:4]:
                raise Conflict("two changes of line %d" % two[0])
        for span in self.spans:
            if not self.source.foreign.isdisjoint(range(span[0], span[2] + 1)):
                raise Conflict("line %d is no Python" % span[0])
            if span[0] in self.removed:
                raise Conflict("line %d is changed and taken out" % span[0])
        for one in self.wraps:
            for two in self.wraps:
                if one[0] < two[0] <= one[1] < two[1]:
                    raise Conflict("two blocks that overlap at line %d" % two[0])

    def _apply_spans(self):
        rows, swallowed = dict(enumerate(self.source.lines, 1)), set()
        for line, column, end_line, end_column, text in reversed(self.spans):
            tail = rows[end_line][end_column:]
            rows[line] = rows[line][:column] + text + tail
            swallowed.update(range(line + 1, end_line + 1))
        return rows, swallowed

    def lines_of(self, number):
        """What stands in the place of one original line."""
        outer = [wrap for wrap in self.wraps if wrap[0] < number <= wrap[1]]
        here = sorted((wrap for wrap in self.wraps if wrap[0] == number), key=lambda wrap: -wrap[1])
        depth = len(outer)
        for row in self.before.get(number, ()):
            yield "    " * depth + row if row else row
        for wrap in here:
            yield "    " * depth + self.source.indent(number) + wrap[2]
            depth += 1
        more = "    " * depth
        if number not in self.removed and number not in self.swallowed:
            row = self.rows[number]
            yield row if not more or not row.strip() or self.source.inside_string(number) else _shifted(more, row)
        for _, rows in sorted(self.after.get(number, ()), key=lambda one: -one[0]):  # the inner block's, then the outer's
            for row in rows:
                yield more + row if row else row


def _shifted(indent, text):
    return "\n".join(indent + row if row.strip() else row for row in text.split("\n"))


def difference(source, text, folder=None):
    """A unified diff from a source to a new text, for `git apply` or `patch -p1` in `folder` (of a file outside it, in /), or None if nothing
    differs."""
    if text == source.text:
        return None
    name = name_in_patches(source.path, folder)
    rows = difflib.unified_diff(source.text.splitlines(True), text.splitlines(True), "a/" + name, "b/" + name)
    return "".join(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows)


def name_in_patches(path, folder):
    """How a patch that is to be applied in a folder (of a file outside it, in /) names a file."""
    name = os.path.relpath(path, folder) if folder else path
    return (path if name.startswith(".." + os.sep) else name).lstrip(os.sep)


def changed_tree(source, text, origins):
    """The tree of a rendered text that says the original line numbers."""
    tree = source.parse(text)
    for node in ast.walk(tree):
        if getattr(node, "lineno", None) is None:
            continue
        node.lineno = origins[node.lineno - 1]
        if getattr(node, "end_lineno", None) is not None:
            node.end_lineno = max(node.lineno, origins[node.end_lineno - 1])
            if node.end_lineno == node.lineno and node.end_col_offset < node.col_offset:
                node.end_col_offset = node.col_offset
    return tree


def _first_line(statement):
    decorators = getattr(statement, "decorator_list", None)
    return min([statement.lineno] + [node.lineno for node in decorators or ()])


def _is_docstring(statement, index):
    return (index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str))


def _is_future(statement):
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _string_lines(text):
    inside, opened = set(), []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name in ("FSTRING_START", "TSTRING_START"):
                opened.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END") and opened:
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError):
        pass
    return inside
