# SPDX-License-Identifier: Apache-2.0
"""Changed cells as a changed notebook, of which a diff can be made that `patch` applies: nothing but the cells' text differs."""

import json
import os

from _tonnage_guest import cells

from .source import Plain

_decoder = json.JSONDecoder()


def gathered(texts):
    """(Source, new text) of files, with one of the notebook in the place of those of its cells. Where the notebook is not known, or does not hold what was run,
    a cell is a file of its own: "cell 4"."""
    own = [(text, changed) for text, changed in texts if getattr(text, "index", None) is not None]
    found = _notebook(own) if own else None
    return [pair for pair in texts if found is None or pair not in own] + ([found] if found is not None else [])


def _notebook(changes):
    name, folder = cells.notebook()
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            whole = file.read()
        spans = list(_spans(whole))
        changed, escapes = whole, whole.isascii() and "\\u" in whole
        for index in sorted({text.index for text, new in changes}, reverse=True):
            text, new = next((text, new) for text, new in changes if text.index == index)  # a cell that was run twice: once
            begin, end = spans[index]
            held = json.loads(whole[begin:end])
            if "".join(held) != text.text:
                return None
            changed = changed[:begin] + _written(whole[begin:end], held, new, escapes) + changed[end:]
    except (OSError, ValueError, IndexError, TypeError):
        return None
    return Plain(path, whole), changed


def _spans(text):
    """(begin, end) of the sources of a notebook's cells in its text; (0, 0) of a cell without one."""
    top = dict(_members(text, _skip(text, 0)))
    if "worksheets" in top:  # nbformat 3
        top = dict(_members(text, list(_items(text, top["worksheets"][0]))[0][0]))
    for begin, end in _items(text, top["cells"][0]):
        parts = dict(_members(text, begin))
        yield parts.get("source") or parts.get("input") or (0, 0)


def _members(text, at):
    """(name, (begin, end)) of the members of the object that begins there."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _decoder.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        end = _decoder.raw_decode(text, begin)[1]
        yield name, (begin, end)
        at = _next(text, end)


def _items(text, at):
    """(begin, end) of the items of the array that begins there."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _decoder.raw_decode(text, at)[1]
        yield at, end
        at = _next(text, end)


def _next(text, at):
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text, at):
    while text[at] in " \t\r\n":
        at += 1
    return at


def _written(before, held, new, escapes):
    """A source as JSON, laid out as it was."""
    if isinstance(held, str):
        return json.dumps(new, ensure_ascii=escapes)
    begin, end = _skip(before, 1), len(before[:-1].rstrip())
    lines = [json.dumps(line, ensure_ascii=escapes) for line in new.splitlines(True)]
    return before[:begin] + ("," + (before[1:begin] or " ")).join(lines) + before[end:]
