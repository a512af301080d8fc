#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the structure of the source tree: what doc/design/0001-house.md wants small.

    tools/house.py [--json] [--root ROOT] [--build FOLDER] [--run PYTHON]

Prints one line a figure: what it was before the rooms were built (commit 6151ff1, tools/house_before.json, measured by this script), and
what it is now. Circles between C files come from the symbols of the object files in FOLDER (build/release), so a build must be there;
what the preload library interposes (open, mmap, ...) is left out, since a call of libc is no call of it. Circles between Python
files come from their imports, inside functions, too. A copy is a pair of places that share six lines or more to the letter, blank
lines, comments, lone punctuation and imports left out. With --run, a program that runs out of memory is run with PYTHON (with
torch), and the parses and analyses of its records are counted (tools/count_passes.py).
"""

import argparse
import ast
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

LONG_FILE = 500
COPIED_LINES = 6
HERE = pathlib.Path(__file__).resolve().parent
BEFORE = HERE / "house_before.json"
EXAMPLE = ("run", "--gpu", "v100", "--html", os.devnull, "--")  # then PYTHON and examples/losses_in_a_list.py
SEARCH_ROOMS = ("run", "search", "trials")  # everything above one run: fix, fit, validate, their trials
TRIAL_BORDER = "src/trials/outcome.c"  # writes and reads what a trial's process leaves
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


def symbols(paths):
    """What nm says of these object files, a symbol a line, its file before it."""
    if not paths:
        return []
    return subprocess.run(["nm", "--print-file-name", *paths], capture_output=True, text=True, check=True).stdout.splitlines()


def c_calls(root, build):
    """{file: files that define what it uses}, by the symbols of the object files whose source is there still."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    objects = {str(path): source_of(build, path) for path in build.rglob("*.c.o")}
    ours = [path for path, source in objects.items() if source.startswith(("src/", "cli/")) and (root / source).is_file()]
    for line in symbols(ours):
        path, _, symbol = line.rpartition(":")  # no symbol of C has one
        words, source = symbol.split(), objects[path]
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
    """{file: how often it looks into a JSON document} of the C files of these rooms that do."""
    files = [path for room in rooms for path in sorted((root / "src" / room).glob("*.c"))]
    counts = {str(path.relative_to(root)): len(JSON_ACCESS.findall(path.read_text())) for path in files}
    return {name: count for name, count in counts.items() if count}


REALLOC = re.compile(r"\b(?:realloc|reallocarray)\s*\(")


def growing_by_hand(root):
    """{file: calls of realloc} outside base/array.c."""
    counts = {}
    for path in sorted((root / "src").rglob("*.c")):
        count = len(REALLOC.findall(path.read_text(errors="replace")))
        if count and path != root / "src/base/array.c":
            counts[str(path.relative_to(root))] = count
    return counts


def significant_lines(path):
    """[(number, text)] of the lines that can be copied."""
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        text = " ".join(line.split())
        if re.search(r"\w", text) and not re.match(r"/?\*|//|#|import |from |return( \w+)?;?$", text):
            found.append((number, text))
    return found


def copies(root):
    """["file:line file:line lines"] of runs of lines that stand in two places, the longest first."""
    places, lines = collections.defaultdict(list), {}
    for top in ("src", "cli", "include", "python", "tests", "fuzz", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".c", ".h", ".py"):
                name = str(path.relative_to(root))
                lines[name] = significant_lines(path)
                texts = [text for _, text in lines[name]]
                for at in range(len(texts) - COPIED_LINES + 1):
                    places[hash(tuple(texts[at:at + COPIED_LINES]))].append((name, at))
    pairs = {(one, two) for found in places.values() for index, one in enumerate(found) for two in found[index + 1:]}
    rows = []
    for (name, at), (other, there) in sorted(pairs):
        if ((name, at - 1), (other, there - 1)) in pairs:
            continue  # not the first window of its run
        length = COPIED_LINES
        while ((name, at + length - COPIED_LINES + 1), (other, there + length - COPIED_LINES + 1)) in pairs:
            length += 1
        rows.append((length, f"{name}:{lines[name][at][0]} {other}:{lines[other][there][0]}"))
    return [f"{where} {length} lines" for length, where in sorted(rows, reverse=True)]


def passes_of_a_run(root, build, python):
    """{"records", "parses", "analyses"} of one run that ends out of memory."""
    command = [sys.executable, HERE / "count_passes.py", "--build", build, "--", *EXAMPLE, python, root / "examples/losses_in_a_list.py"]
    last = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()[-1]
    words = last.split()
    return {f"{name}_of_a_run": int(count) for name, count in zip(words[::2], words[1::2])}


def measure(root, build):
    lines, long_files = collections.Counter(), {}
    for path in sources(root):
        count = len(path.read_text(errors="replace").splitlines())
        lines[room_of(root, path)] += count
        if count > LONG_FILE and path.suffix != ".def":
            long_files[str(path.relative_to(root))] = count
    guest = root / "python/tonnage/guest/_tonnage_guest"
    tables = [path.read_text() for path in (root / "src/vgpu").rglob("*.def")]
    figures = {
        "circles_c": [" ".join(members) for members in strongly_connected(c_calls(root, build))],
        "circles_guest": [" ".join(members) for members in strongly_connected(python_imports(guest))],
        "imports_inside_functions": {
            path.name: count for path in sorted(guest.glob("*.py"))
            if (count := len(re.findall(r"^[ \t]+from \. ?import|^[ \t]+from \.\w* import", path.read_text(), re.M)))},
        "globals": sum(len(re.findall(r"^\s+global\s", path.read_text(), re.M)) for path in guest.glob("*.py")),
        "json_accesses_in_search": {name: count for name, count in json_accesses(root, SEARCH_ROOMS).items() if name != TRIAL_BORDER},
        "json_accesses_where_a_trial_ends": json_accesses(root, ("trials",)).get(TRIAL_BORDER, 0),
        "json_accesses_in_supervise": json_accesses(root, SUPERVISE_ROOMS),
        "refused_rows": sum(len(re.findall(r"^TN_REFUSE\w*\(", text, re.M)) for text in tables),
        "answered_rows": sum(len(re.findall(r"^TN_(?!REFUSE)\w+\(", text, re.M)) for text in tables),
        "library_names": sum(len(re.findall(r"^\w", path.read_text(), re.M))
                             for path in (root / "src/vgpu").rglob("*.names")),
        "growing_by_hand": growing_by_hand(root),
        "copies": copies(root),
        "files_above_500_lines": long_files,
        "lines": dict(sorted(lines.items())),
    }
    return figures


def total(value):
    """What a figure comes to: a list counts its items, a table adds up; files above a length are counted."""
    return len(value) if isinstance(value, list) else sum(value.values()) if isinstance(value, dict) else value


def as_text(before, now):
    """A row a figure, then a row a part of it."""
    yield f"{'':>9} {'before':>9} {'now':>9}"
    for name, value in now.items():
        old = before.get(name)
        sums = [len(side) if name == "files_above_500_lines" and side is not None else None if side is None else total(side)
                for side in (old, value)]
        yield f"{'':>9} {'-' if sums[0] is None else sums[0]:>9} {sums[1]:>9}  {name}"
        if isinstance(value, list):
            yield from (f"{'':>29}    {part}" for part in value)
        elif isinstance(value, dict):
            both = old if name == "lines" and isinstance(old, dict) else {}
            for part in sorted({*value, *both}):
                yield f"{'':>9} {both.get(part, ''):>9} {value.get(part, 0):>9}    {part}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", type=pathlib.Path, help="the folder of object files (ROOT/build/release)")
    parser.add_argument("--run", metavar="PYTHON", help="count the passes over the records of a run, too")
    options = parser.parse_args()
    build = options.build or options.root / "build/release"
    if not any(build.rglob("*.c.o")):
        parser.error(f"{build} has no object files; run `make build` first")
    figures = measure(options.root, build)
    if options.run:
        figures = passes_of_a_run(options.root, build, options.run) | figures
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        print("\n".join(as_text(json.loads(BEFORE.read_text()), figures)))


if __name__ == "__main__":
    sys.exit(main())
