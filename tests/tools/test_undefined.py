# SPDX-License-Identifier: Apache-2.0
"""No Python text of ours uses a name that nothing defines: in a sensor that would be lost as it is needed, and not before."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("python", "tools", "bench", "tests")


def test_every_name_is_defined():
    done = subprocess.run([sys.executable, "-m", "pyflakes", *(str(ROOT / folder) for folder in FOLDERS)], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "No module" not in done.stderr, done.stderr  # what it has no syntax for (cells of notebooks) is told there, too
    assert not [line for line in done.stdout.splitlines() if "undefined name" in line], done.stdout
