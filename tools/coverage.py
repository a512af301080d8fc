#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the virtual GPU know every name that installed programs ask for?

    tools/coverage.py ENVIRONMENT...          an environment's root, or its site-packages folder
    tools/coverage.py --json - ENVIRONMENT...
    tools/coverage.py --built build/release/lib/tonnage/vgpu

Compares the names src/vgpu/*/*.names with what the libraries of each wheel import, and with the names that they look up
at run time: strings in them, and names in the few source files that are compiled or loaded with ctypes when a program
runs. With --built, also that every library that was built exports every name of its list.

Exit status: 0 every name is answered or refused; 1 some name stands in no list (printed), or is not exported; 2 wrong
usage; 77 nothing could be checked because all environments are missing.
"""
import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cuda_names  # noqa: E402
import elf_names  # noqa: E402

# NVIDIA's own libraries, also where a wheel bundles a copy: what they ask of each other is not asked of us.
NVIDIA = re.compile(r"lib(cu[a-z]|nv[a-zA-Z]|nccl|pcsampling|checkpoint)\w*[-.\w]*\.so")
# A bundled copy is renamed with a hash: libcudart.41118559.so.12.
HASHED = re.compile(r"\.[0-9a-f]{8}(?=\.so)|-[0-9a-f]{8}(?=\.so)")
# Sources that look names up, with the pattern that finds these.
SOURCES = [
    ("pynvml.py", re.compile(r"""_nvmlGetFunctionPointer\(["'](\w+)["']""")),
    ("torch/cuda/__init__.py", re.compile(r"\bnvml_h\.(nvml\w+)")),
    ("triton/backends/nvidia/driver.c", re.compile(r"\b(cu[A-Z]\w+)\s*\(|\"(cu[A-Z]\w+)\"|dlsym\([^,]*, *\"(\w+)\"")),
    ("triton/backends/nvidia/driver.py", re.compile(r"\b(cu[A-Z]\w+)\s*\(")),
]


def site_packages(environment):
    """The folder that holds the environment's packages, or None when there is none."""
    if not environment.is_dir():
        return None
    found = sorted(environment.glob("lib/python3*/site-packages"))
    return found[0] if found else environment


def wheel_of(path, root):
    """The package that a file belongs to: its top folder, without the .libs that auditwheel adds."""
    parts = path.relative_to(root).parts
    return re.sub(r"\.libs$", "", parts[0]) if len(parts) > 1 else parts[0]


def objects(root):
    """The shared objects of an environment that are not NVIDIA's own."""
    for path in sorted(root.rglob("*.so*")):
        inside = path.relative_to(root).parts
        if inside[0] in ("nvidia", "cusparselt") or not path.is_file() or path.is_symlink():
            continue
        if not NVIDIA.match(path.name) and "cupti" not in inside:
            yield path


class Wheel:
    """What one package asks for: folder -> names."""

    def __init__(self):
        self.imported = {}
        self.looked_up = {}
        self.own = set()  # names that its libraries define for each other

    def add(self, kind, folder, name):
        getattr(self, kind).setdefault(folder, set()).add(name)


def read_object(path, wheel, owners):
    for symbol in elf_names.symbols(path):
        if symbol.defined:
            wheel.own.add(symbol.name)
            continue
        owner = owners.get(HASHED.sub("", symbol.version_file)) if symbol.version_file else None
        folder = owner or cuda_names.folder_of(symbol.name)
        if folder and (owner or not symbol.version_file or NVIDIA.match(symbol.version_file)):
            wheel.add("imported", folder, symbol.name)
    for name in elf_names.strings(path, cuda_names.ANY_BYTES):
        if cuda_names.is_function(name):
            wheel.add("looked_up", cuda_names.folder_of(name), name)


def read_source(text, pattern, wheel):
    for match in pattern.finditer(text):
        name = next(group for group in match.groups() if group)
        if cuda_names.is_function(name):
            wheel.add("looked_up", cuda_names.folder_of(name), name)


def read_environment(root):
    """wheel name -> Wheel, only those that ask for something."""
    wheels, owners = {}, cuda_names.sonames()
    for path in objects(root):
        read_object(path, wheels.setdefault(wheel_of(path, root), Wheel()), owners)
    for name, pattern in SOURCES:
        path = root / name
        if path.exists():
            wheel = wheels.setdefault(wheel_of(path, root), Wheel())
            read_source(path.read_text(errors="replace"), pattern, wheel)
    for wheel in wheels.values():
        for names in (wheel.imported, wheel.looked_up):
            for folder in names:
                names[folder] -= wheel.own
    return {name: wheel for name, wheel in sorted(wheels.items()) if any(wheel.imported.values()) or
            any(wheel.looked_up.values())}


def judge(wheel, tables):
    """One row a library that the wheel asks for something of."""
    rows = []
    for folder in cuda_names.FOLDERS:
        imported = wheel.imported.get(folder, set())
        looked_up = wheel.looked_up.get(folder, set()) - imported
        names = imported | looked_up
        if not names:
            continue
        verdicts = {name: tables[folder].get(name) for name in names}
        rows.append({
            "library": folder, "imported": len(imported), "looked_up": len(looked_up),
            "answered": sum(verdict is not None and verdict not in cuda_names.REFUSED for verdict in verdicts.values()),
            "refused": sum(verdict in cuda_names.REFUSED for verdict in verdicts.values()),
            "unknown": sorted(name for name, verdict in verdicts.items() if verdict is None)})
    return rows


def check_environment(environment, tables):
    root = site_packages(environment)
    if root is None:
        return {"environment": str(environment), "missing": True, "wheels": []}
    wheels = [{"wheel": name, "libraries": judge(wheel, tables)} for name, wheel in read_environment(root).items()]
    return {"environment": str(environment), "missing": False, "wheels": wheels}


def check_built(folder, tables):
    """soname -> names of its table that the built library does not export (None: it was not built)."""
    failures = {}
    for soname, name in cuda_names.sonames().items():
        path = folder / soname
        exported = {symbol.name for symbol in elf_names.symbols(path) if symbol.defined} if path.exists() else None
        lacking = sorted(set(tables[name]) - exported) if exported is not None else None
        if lacking is None or lacking:
            failures[soname] = lacking
    return failures


def print_environment(result):
    if result["missing"]:
        print("%s: MISSING, not checked" % result["environment"])
        return
    print(result["environment"])
    print("  %-14s %-11s %9s %10s %9s %8s %8s" % ("wheel", "library", "imported", "looked up", "answered", "refused",
                                                  "unknown"))
    for wheel in result["wheels"]:
        for row in wheel["libraries"]:
            print("  %-14s %-11s %9d %10d %9d %8d %8d" % (wheel["wheel"][:14], row["library"], row["imported"],
                                                          row["looked_up"], row["answered"], row["refused"],
                                                          len(row["unknown"])))
    for wheel in result["wheels"]:
        for row in wheel["libraries"]:
            for name in row["unknown"]:
                print("  unknown: %s (%s, asked for by %s): add it to src/vgpu/%s/%s.names" % (
                    name, row["library"], wheel["wheel"], row["library"], row["library"]))


def print_built(failures):
    for soname, names in failures.items():
        if names is None:
            print("%s: not built" % soname)
        else:
            print("%s: does not export %s" % (soname, ", ".join(names)))


def main():
    parser = argparse.ArgumentParser(description="compare the name tables with what installed programs ask for")
    parser.add_argument("environments", type=pathlib.Path, nargs="*", metavar="ENVIRONMENT")
    parser.add_argument("--built", type=pathlib.Path, metavar="DIR", help="folder of the built libraries")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON (-: to stdout, not the text)")
    arguments = parser.parse_args()
    if not arguments.environments and not arguments.built:
        parser.error("no environment is named")
    tables = cuda_names.read_tables()
    results = [check_environment(environment, tables) for environment in arguments.environments]
    failures = check_built(arguments.built, tables) if arguments.built else {}
    unknown = sum(len(row["unknown"]) for result in results for wheel in result["wheels"] for row in wheel["libraries"])
    if arguments.json:
        text = json.dumps({"schema": "tonnage.coverage/1", "environments": results, "not_exported": failures,
                           "unknown": unknown}, indent=1) + "\n"
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            pathlib.Path(arguments.json).write_text(text)
    if arguments.json != "-":
        for result in results:
            print_environment(result)
        print_built(failures)
    if unknown or failures:
        return 1
    return 77 if results and all(result["missing"] for result in results) and not arguments.built else 0


if __name__ == "__main__":
    sys.exit(main())
