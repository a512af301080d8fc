#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the dependency law of the house from the #include lines, and that no two headers below src/ share a name; the
names of functions; and the law of the guest hook from its imports.

    tools/check_rooms.py [ROOT]

Every room may include the public headers, itself, and the rooms that SEES lists for it. A module of the guest hook imports
its own layer and those that GUEST_SEES lists, also inside functions; no circle, and few `global` statements. A function whose name begins
with tn_ is declared in include/ or exported to the guest hook; one that crosses files begins with tn__ and is defined once. Prints one line a violation and
ends with 1 when there is one.
"""

import pathlib
import re
import sys

from house import python_imports, strongly_connected

BASE = {"base"}
GROUND = BASE | {"device", "gpu", "pickle", "message"}
# room: the rooms below src/ that its files may include, besides itself. "cli" stands beside src/.
SEES = {
    "base": set(),
    "gpu": BASE,
    "pickle": BASE,
    "message": BASE,
    "change": BASE,
    "device": BASE | {"gpu"},
    "dnn": BASE,
    "allocator": BASE | {"device"},
    "trace": GROUND | {"allocator"},
    "simulate": GROUND | {"allocator", "trace"},
    "analyze": GROUND | {"allocator", "trace", "simulate"},
    "library": BASE | {"gpu", "message", "trace", "analyze"},
    "verdict": GROUND | {"allocator", "trace", "simulate", "analyze"},
    "report": GROUND | {"change", "allocator", "trace", "simulate", "analyze", "verdict", "doctor", "serve"},
    "inspect": GROUND | {"allocator", "trace", "simulate", "analyze", "verdict", "doctor", "serve", "report"},
    "supervise": GROUND | {"change", "allocator", "trace", "simulate", "analyze", "verdict", "report", "dnn", "requests"},
    "trials": GROUND | {"change", "allocator", "trace", "simulate", "analyze", "verdict", "report", "supervise"},
    "run": GROUND | {"change", "allocator", "trace", "simulate", "analyze", "verdict", "report", "supervise", "trials"},
    "search": GROUND | {"change", "allocator", "trace", "simulate", "analyze", "verdict", "report", "supervise", "trials", "run"},
    "cli": set(),
    "code": BASE,
    "requests": BASE,
    "doctor": BASE | {"code"},
    "serve": BASE | {"gpu"},
    "vgpu": BASE | {"device", "gpu", "dnn", "code"},
    "preload": BASE,
    "smi": set(),
    "parked": set(),
}
# Single headers that a room may include although it does not see their room: {room: {header: why}}.
EXCEPTIONS = {
    "supervise": {"preload/sandbox.h": "the two ends of one small protocol",
                  "preload/index.h": "made by the supervisor, used by the overlay",
                  "preload/weights.h": "the table that the overlay fills and the report reads",
                  "preload/raw.h": "the reaper answers what the filter below the overlay traps",
                  "preload/network.h": "the supervisor makes the table that the processes of a run share, and reads it"},
    "analyze": {"verdict/findings.def": "the one table of findings; it holds no code"},
    "preload": {"vgpu/sonames.def": "the one list of library names; it holds no code"},
}
# Below these rooms each folder is a room of its own that sees only the folders named here.
FOLDERS = {"vgpu": {"core"}}
GUEST = pathlib.PurePath("python/tonnage/guest/_tonnage_guest")
# What happens goes from the sensors by events.py to the recorders, and policy decides by what these know; boot.py sees all.
GUEST_LAYERS = {
    "ground": """cellnames data_notes draws events forks frames generated guard held image_sizes imports ledger lengths looks metadata methods memory_log news origin padding relayed
              pages predicates reckoned recode record references state torchapi virtual weights""",
    "sensors": """absent again backward calls cells compiling downloads fetched files four_bits generation init launching library_memory loaders made_data made_sets made_tables optimizers ports pretrained trackers uncompiled uploads
               values""",
    "recorders": """ahead cell_holders collectives copies earlier epochs facts gathered graph growth history holds host inputs left let_go loaded oom peaks phases later_rounds recomputed
                 ranks reads regions retainers shapes trainings unused usage work zero""",
    "policy": "cell_loops consumers document ending imported fast_forward serving settle step_growth steps trainers workers worst_first",
    "boot": "boot points",
}
GUEST_SEES = {
    "ground": set(),
    "sensors": {"ground"},
    "recorders": {"ground"},
    "policy": {"ground", "recorders"},
    "boot": {"ground", "sensors", "recorders", "policy"},
}
MOST_GLOBALS = 15
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
DECLARED = re.compile(r"\b(tn_[a-z]\w*)\s*\(")
EXPORTED = re.compile(r"\b(?:TN_EXPORT|TN_ENTRY\w*)\b[^;{]*?\b(tn_[a-z]\w*)\s*\(")
DEFINED = re.compile(r"(?<!\bstatic)(?:^(?!.*\bstatic\b)[a-z_].*|^)\n(tn_\w+)\(", re.MULTILINE)
SUBSCRIBES = re.compile(r"\.subscribe\(")
GLOBAL = re.compile(r"^\s+global\s", re.MULTILINE)
SOURCES = {".c", ".h", ".S", ".def", ".inc"}


def room_of(path):
    """(room, folder in the room) of a path relative to src/ or, for the command line, to the root."""
    parts = path.parts
    return parts[0], parts[1] if len(parts) > 2 else ""


def find_header(root, file, name):
    """Where an included name lies: ("public"|"room"|"own"|"outside", path relative to src/)."""
    if (root / "include" / name).is_file():
        return "public", pathlib.PurePath(name)
    if (root / "src" / name).is_file():
        return "room", pathlib.PurePath(name)
    beside = (file.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root / "src"):
        return "room", pathlib.PurePath(beside.relative_to(root / "src"))
    return "own" if beside.is_file() else "outside", pathlib.PurePath(name)


def complaint(room, folder, header):
    """What is wrong with a file of room/folder including `header` of src/, or None."""
    its_room, its_folder = room_of(header)
    if its_room == room:
        closed = room in FOLDERS and folder and its_folder not in FOLDERS[room] | {folder, ""}
        return f"{room}/{folder} does not see {header}" if closed else None
    if its_room in SEES[room] or str(header) in EXCEPTIONS.get(room, {}):
        return None
    return f"{room} does not see {header}"


def check_file(root, file, room, folder):
    """Yields what is wrong with one file's includes."""
    text = file.read_text(errors="replace")
    for match in INCLUDE.finditer(text):
        where, header = find_header(root, file, match.group(1))
        problem = complaint(room, folder, header) if where == "room" else None
        if problem:
            line = text.count("\n", 0, match.start(1)) + 1
            yield f"{file.relative_to(root)}:{line}: {problem}"


def check_guest(root):
    """Yields what is wrong with the guest hook's modules."""
    graph = python_imports(root / GUEST)
    layer_of = {module: layer for layer, modules in GUEST_LAYERS.items() for module in modules.split()}
    for module in sorted(set(graph) - {"__init__"}):
        if module not in layer_of:
            yield f"{GUEST}/{module}.py: the module is in no layer of tools/check_rooms.py"
            continue
        seen = GUEST_SEES[layer_of[module]] | {layer_of[module]}
        for other in sorted(graph[module]):
            if layer_of.get(other, layer_of[module]) not in seen:
                yield f"{GUEST}/{module}.py: {layer_of[module]} do not see {layer_of[other]} ({other})"
            if other == "events" and layer_of[module] != "boot" and SUBSCRIBES.search((root / GUEST / f"{module}.py").read_text()):
                yield f"{GUEST}/{module}.py: boot.py alone subscribes"
    for circle in strongly_connected(graph):
        yield f"{GUEST}: a circle of imports: {' '.join(circle)}"
    globals_found = sum(len(GLOBAL.findall(path.read_text())) for path in (root / GUEST).glob("*.py"))
    if globals_found > MOST_GLOBALS:
        yield f"{GUEST}: {globals_found} `global` statements, at most {MOST_GLOBALS} are allowed"


def check_names(root):
    """Yields functions of src/ with a prefix that is not theirs, or a name that another one has."""
    public = {name for header in (root / "include").rglob("*.h") for name in DECLARED.findall(header.read_text())}
    texts = {file: file.read_text() for file in sources_below(root / "src")}
    public.update(name for text in texts.values() for name in EXPORTED.findall(text))
    first = {}
    for file, text in texts.items():
        for match in DEFINED.finditer(text) if file.suffix == ".c" else ():
            name, where = match.group(1), f"{file.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            if not name.startswith("tn__") and name not in public:
                yield f"{where}: {name} is not public: tn__{name[3:]}, or static"
            if first.setdefault(name, where) != where:
                yield f"{where}: {name} is also defined in {first[name]}"


def sources_below(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())


def check(root):
    """Yields every violation below `root`."""
    root = root.resolve()
    names = {}
    for file in sources_below(root / "src"):
        room, folder = room_of(file.relative_to(root / "src"))
        if room not in SEES:
            yield f"{file.relative_to(root)}: the room {room} is not in the table of tools/check_rooms.py"
            continue
        yield from check_file(root, file, room, folder)
    for file in sources_below(root / "cli"):
        yield from check_file(root, file, "cli", "")
    for file in sources_below(root / "src"):
        first = names.setdefault(file.name, file) if file.suffix == ".h" else file
        if first != file:
            yield f"{file.relative_to(root)}: a header of this name stands in {first.relative_to(root)}, too"
    yield from check_names(root)
    yield from check_guest(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    problems = list(check(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
