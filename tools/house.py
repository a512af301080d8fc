#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the structure of the source tree: what doc/design/0001-house.md wants small.

    tools/house.py [--json] [--root ROOT] [--build FOLDER]

Prints one line a figure. Circles between C files come from the symbols of the object files in FOLDER (build/release), so
a build must be there; what the preload library interposes (open, mmap, ...) is left out, since a call of libc is no call
of it. Circles between Python files come from their imports, inside functions, too. Lines that count are those that
are neither empty nor only a comment's end.
"""

import argparse
import ast
import collections
import json
import pathlib
import re
import subprocess
import sys

LONG_FILE = 500
SEARCH_ROOMS = ("run", "search", "trials")  # everything above one run: fix, fit, validate, their trials
SUPERVISE_ROOMS = ("supervise",)  # one run: reads what the hook in the program has written
JSON_ACCESS = re.compile(r"\b(?:json_(?:object_get|object_iter\w*|array_get|\w+_value|is_\w+|unpack\w*|loads?\w*)|tn__trial_figure)\s*\(")


def strongly_connected(graph):
    """The circles of a graph {node: set of nodes}, each a sorted list of more than one node (Tarjan, without recursion)."""
    index, low, on_stack, stack, circles = {}, {}, set(), [], []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            target = next((edge for edge in edges if edge not in index or edge in on_stack), None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = stack[stack.index(node):]
                    del stack[stack.index(node):]
                    on_stack.difference_update(members)
                    if len(members) > 1:
                        circles.append(sorted(members))
            elif target in index:
                low[node] = min(low[node], index[target])
            else:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(sorted(graph.get(target, ())))))
    return sorted(circles, key=lambda members: (-len(members), members))


def source_of(build, path):
    """src/room/CMakeFiles/target.dir/file.c.o → src/room/file.c"""
    parts = path.relative_to(build).parts
    at = parts.index("CMakeFiles")
    return "/".join(parts[:at] + parts[at + 2:])[: -len(".o")]


def c_calls(build):
    """{file: files that define what it uses}, by the object files' symbols."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    for path in build.rglob("*.c.o"):
        source = source_of(build, path)
        if not source.startswith(("src/", "cli/")):
            continue
        listing = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        for words in map(str.split, listing.splitlines()):
            if words[-2] == "U":
                used[source].add(words[-1])
            elif words[-2] in "TDBRVW" and (not source.startswith("src/preload/") or words[-1].startswith("tn_")):
                defined[words[-1]].add(source)
    graph = {source: set() for source in used}
    for source, names in used.items():
        for name in names:
            graph[source] |= defined.get(name, set()) - {source}
    return graph


def python_imports(package):
    """{module: modules of the same package that it imports}, relative imports only."""
    graph = {}
    for path in package.glob("*.py"):
        targets = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                targets |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
        graph[path.stem] = {name for name in targets if (package / f"{name}.py").is_file()} - {path.stem, "__init__"}
    return graph


def sources(root):
    """Every C and Python source that is ours to read."""
    for top in ("src", "cli", "include", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".c", ".h", ".py", ".def"):
                yield path


def room_of(root, path):
    parts = path.relative_to(root).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def json_accesses(root, rooms):
    """How often C files of these rooms look into a JSON document."""
    files = [path for room in rooms for path in (root / "src" / room).glob("*.c")]
    return sum(len(JSON_ACCESS.findall(path.read_text())) for path in files)


def measure(root, build):
    lines, long_files = collections.Counter(), {}
    for path in sources(root):
        count = len(path.read_text(errors="replace").splitlines())
        lines[room_of(root, path)] += count
        if count > LONG_FILE and path.suffix != ".def":
            long_files[str(path.relative_to(root))] = count
    guest = root / "python/tonnage/guest/_tonnage_guest"
    tables = [path.read_text() for path in (root / "src/vgpu").rglob("*.def")]
    return {
        "circles_c": strongly_connected(c_calls(build)),
        "circles_guest": strongly_connected(python_imports(guest)),
        "imports_inside_functions": sum(
            len(re.findall(r"^[ \t]+from \. ?import|^[ \t]+from \.\w* import", path.read_text(), re.M))
            for path in guest.glob("*.py")),
        "globals": sum(len(re.findall(r"^\s+global\s", path.read_text(), re.M)) for path in guest.glob("*.py")),
        "json_accesses_in_search": json_accesses(root, SEARCH_ROOMS),
        "json_accesses_in_supervise": json_accesses(root, SUPERVISE_ROOMS),
        "refused_rows": sum(len(re.findall(r"^TN_REFUSE\w*\(", text, re.M)) for text in tables),
        "library_names": sum(len(re.findall(r"^\w", path.read_text(), re.M))
                             for path in (root / "src/vgpu").rglob("*.names")),
        "answered_rows": sum(len(re.findall(r"^TN_(?!REFUSE)\w+\(", text, re.M)) for text in tables),
        "files_above_500_lines": long_files,
        "lines": dict(sorted(lines.items())),
    }


def as_text(figures):
    for name in ("circles_c", "circles_guest"):
        yield f"{name} {len(figures[name])}"
        yield from (f"  {len(members)}: {' '.join(members)}" for members in figures[name])
    for name in ("imports_inside_functions", "globals", "json_accesses_in_search", "json_accesses_in_supervise", "refused_rows", "answered_rows",
                 "library_names"):
        yield f"{name} {figures[name]}"
    for name in ("files_above_500_lines", "lines"):
        yield f"{name} {len(figures[name]) if name != 'lines' else sum(figures[name].values())}"
        yield from (f"  {count:6} {where}" for where, count in figures[name].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", type=pathlib.Path, help="the folder of object files (ROOT/build/release)")
    options = parser.parse_args()
    build = options.build or options.root / "build/release"
    if not any(build.rglob("*.c.o")):
        parser.error(f"{build} has no object files; run `make build` first")
    figures = measure(options.root, build)
    print(json.dumps(figures, indent=1) if options.json else "\n".join(as_text(figures)))


if __name__ == "__main__":
    sys.exit(main())
