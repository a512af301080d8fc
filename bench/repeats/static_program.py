# SPDX-License-Identifier: Apache-2.0
"""Builds static_program.go, runs it under Tonnage (static_program.py TONNAGE SOURCE) and says what changed."""

import os
import pathlib
import subprocess
import sys

tonnage, source = sys.argv[1:]
here = pathlib.Path.cwd()
tree = here / "tree"
(tree / "tree").mkdir(parents=True)
(tree / "file").write_text("old")
(tree / "tree/inner").touch()
goes = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(here / "cache"), "GOPATH": str(here / "path")}
subprocess.run(["go", "build", "-o", "program", source], env=goes, check=True)


def state():
    return sorted((str(path), path.lstat().st_mode, path.read_text() if path.is_file() else "") for path in tree.rglob("*"))


before = state()
done = subprocess.run([tonnage, "run", "--gpu=rtx3060", "--", "./program", str(tree)], capture_output=True, text=True)
print(done.stdout + done.stderr)
print("the real folder is", "as it was" if state() == before else "changed")
