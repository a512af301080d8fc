# SPDX-License-Identifier: Apache-2.0
"""The program's line behind a line of code that Inductor has generated.

Each graph that is handed to Inductor has nodes that know the program's stack, also where the code itself comes out of a cache.
Inductor writes the names of the nodes above each kernel of its code. So a buffer's line leads to the kernel it is made for,
to a node, to the program. The name of the function says that the code is compiled.
"""

import collections
import functools
import re

from . import guard, origin

_MOST_GRAPHS = 256
_NODES = re.compile(r"# (?:Topologically Sorted )?Source Nodes: \[([^\]]*)\]")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')

_graphs = collections.deque(maxlen=_MOST_GRAPHS)  # name of a node -> its stack, as text; the newest last


def place_of(file, line):
    """(file, line, function) of the program for a line of a generated file; None where that cannot be told."""
    return _place_of(file, line, len(_graphs))


def around_compile(original):
    """For the function that Inductor is handed a graph by."""

    @functools.wraps(original)
    def compile_fx(graph, *args, **kwargs):
        _note(graph)
        return original(graph, *args, **kwargs)

    return compile_fx


@guard.guarded
def _note(graph):
    nodes = getattr(getattr(graph, "graph", None), "nodes", ())
    stacks = {node.name: node.stack_trace for node in nodes if getattr(node, "stack_trace", None)}
    if stacks:
        _graphs.append(stacks)


@functools.lru_cache(maxsize=4096)
def _place_of(file, line, graphs):
    names, text = _nodes_of(file), _lines_of(file)
    if not names or not 0 < line <= len(text):
        return None
    # A buffer is made before the kernel whose nodes stand above it.
    if "empty_strided" in text[line - 1]:
        nodes = next((nodes for at, nodes in names if at >= line), names[-1][1])
    else:
        nodes = next((nodes for at, nodes in reversed(names) if at <= line), names[0][1])
    stacks = _graph_of(file, graphs)
    for name in reversed(nodes):
        found = _users_line(stacks.get(name))
        if found is not None:
            return found
    return None


@functools.lru_cache(maxsize=64)
def _lines_of(file):
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


@functools.lru_cache(maxsize=64)
def _nodes_of(file):
    """[(line, names of nodes)] of a generated file."""
    found = ((number, _NODES.search(text)) for number, text in enumerate(_lines_of(file), 1))
    return [(number, [name.strip() for name in match.group(1).split(",")]) for number, match in found if match]


@functools.lru_cache(maxsize=64)
def _graph_of(file, graphs):
    """The graph that most of the file's nodes belong to, the newest of several."""
    names = {name for _, nodes in _nodes_of(file) for name in nodes}
    return max(reversed(_graphs), key=lambda stacks: len(names & stacks.keys()), default={})


def _users_line(stack):
    """The innermost line of the user's in a stack as text, else of a library's; None for neither."""
    fallback = None
    for file, line, function in reversed(_FRAME.findall(stack or "")):
        kind = origin.kind_of_file(file)
        if kind is origin.USER:
            return origin.absolute(file), int(line), function + " (compiled)"
        if kind is origin.LIBRARY and fallback is None:
            fallback = file, int(line), function + " (compiled)"
    return fallback


@guard.alone
def name_frames(snapshot, elsewhere):
    """Puts the program's lines in the place of generated ones in a snapshot of PyTorch's. What cannot be told gets a file of
    the folder `elsewhere`, torch's, so that the frames above it tell."""
    if not _graphs:
        return
    done = set()
    for stack in stacks(snapshot):
        for frame in stack:
            if id(frame) in done:
                continue
            done.add(id(frame))
            file = frame.get("filename") or ""
            if origin.is_generated(file):
                found = place_of(file, frame.get("line") or 0)
                if found is not None:
                    frame["filename"], frame["line"], frame["name"] = found
                else:
                    frame["filename"] = elsewhere + "/_inductor/generated.py"


def stacks(snapshot):
    """Every stack in a snapshot of PyTorch's."""
    for trace in snapshot.get("device_traces", ()):
        for event in trace:
            yield event.get("frames") or []
    for segment in snapshot.get("segments", ()):
        yield segment.get("frames") or []
        for block in segment.get("blocks", ()):
            yield block.get("frames") or []
