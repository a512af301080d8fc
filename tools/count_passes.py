#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how often one `tonnage run` parses a record of PyTorch's allocator, and how often it analyses one.

    tools/count_passes.py [--build FOLDER] [--] ARGUMENTS OF tonnage...

for instance

    tools/count_passes.py -- run --gpu v100 --html page.html -- PYTHON examples/losses_in_a_list.py

Links the command of FOLDER (build/release) once more, as bin/tonnage-counting beside it, with the two functions that open a snapshot and
an analysis wrapped (ld's --wrap), runs it, and prints a line a record that was opened, then the two sums over all processes of the command.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

COUNTER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void
count(const char *what, const void *of)
{
	char line[4200];
	const char *path = getenv("COUNT_PASSES");
	int file = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	int length = snprintf(line, sizeof(line), "%s\n", what);
	if (file >= 0 && write(file, line, length) == length)
		close(file);
}

int __real_tn_snapshot_open(const char *path, const void *options, void **snapshot);
int
__wrap_tn_snapshot_open(const char *path, const void *options, void **snapshot)
{
	char line[4196];
	snprintf(line, sizeof(line), "parse %s", path);
	count(line, snapshot);
	return __real_tn_snapshot_open(path, options, snapshot);
}

int __real_tn__analysis_open(const void *snapshot, int device, void **analysis);
int
__wrap_tn__analysis_open(const void *snapshot, int device, void **analysis)
{
	count("analysis", snapshot);
	return __real_tn__analysis_open(snapshot, device, analysis);
}
"""
WRAPS = "-Wl,--wrap=tn_snapshot_open -Wl,--wrap=tn__analysis_open"


def link(build):
    """The command, linked with the counter; its path."""
    commands = subprocess.run(["ninja", "-t", "commands", "bin/tonnage"], cwd=build, capture_output=True, text=True, check=True)
    command = commands.stdout.strip().splitlines()[-1]
    out = "bin/tonnage-counting"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "counter.c"
        source.write_text(COUNTER)
        linked = command.replace(" -o bin/tonnage ", f" {WRAPS} {source} -o {out} ")
        if linked == command:
            sys.exit(f"{build}: its link command has another form than this script knows")
        subprocess.run(linked, shell=True, cwd=build, check=True)
    return build / out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build/release")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of tonnage")
    options = parser.parse_args()
    arguments = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    if not arguments:
        parser.error("what should tonnage run?")
    command = link(options.build)
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "passes"
        subprocess.run([command, *arguments], env={**os.environ, "COUNT_PASSES": str(log)})
        lines = log.read_text().splitlines() if log.exists() else []
    command.unlink()
    parses = collections.Counter(line.removeprefix("parse ") for line in lines if line.startswith("parse "))
    for path, count in parses.items():
        print(f"  {count} {pathlib.Path(path).name}")
    print(f"records {len(parses)} parses {sum(parses.values())} analyses {lines.count('analysis')}")


if __name__ == "__main__":
    main()
