# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's libraries hold of the computer's memory by being loaded, and their stand-ins do not (doc/design/0036-hosts.md).

A library's initialisers register its kernels; cuBLASLt alone holds 92 MiB of anonymous memory then, in each program that imports
torch, card or no card. So where somebody asked for the computer's memory, a process of its own loads the real files beside
torch, and as much is held here: workers share it as they would there.
"""

import mmap
import os
import subprocess
import sys

_KNOWN = "TONNAGE_LIBRARY_BYTES"  # in the environment: what one process has found, those that it starts need not
_SECONDS = 60
_held = []  # the memory; it is shared with workers

# A library may need another of them, so those that fail are tried again behind the others.
_LOAD = """
import ctypes, sys
def held():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
before, left = held(), sys.argv[1:]
for _ in range(3):
    failed = []
    for path in left:
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            failed.append(path)
    left = failed
print(held() - before)
"""


def hold(torch):
    """Once torch has been imported."""
    known = os.environ.get(_KNOWN)
    if known is None:
        real = _real(_stand_ins(), os.path.dirname(os.path.dirname(torch.__file__)))
        known = os.environ[_KNOWN] = str(_measured(real)) if real else "0"
    size = int(known)
    if size > 0:
        _held.append(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))


def bytes_held():
    """In this process; 0: nothing was asked, or there are no real libraries."""
    return sum(map(len, _held))


def _stand_ins():
    """Names of the libraries of this process that stand in for others."""
    folder = os.path.join("lib", "tonnage", "vgpu") + os.sep
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in maps if folder in line}
    return {os.path.basename(path) for path in paths}


def _real(names, packages):
    """The files of these names that torch would have loaded."""
    found = {}
    for top in (os.path.join(packages, "torch", "lib"), os.path.join(packages, "nvidia")):
        for folder, _, files in os.walk(top):
            for name in names.intersection(files):
                found.setdefault(name, os.path.join(folder, name))
    return sorted(found.values())


def _measured(paths):
    environment = {**os.environ, "TONNAGE_GPU": "real"}  # nothing is stood in for
    words = [sys.executable, "-I", "-S", "-c", _LOAD, *paths]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    return max(0, int(done.stdout)) if done.returncode == 0 else 0
