"""Holds MIB of the card and passes a small tensor through a module, for ever or N times.

    sharer.py MIB [after=FILE] [gone=FILE] [says=FILE] [passes=N] [status=N]

after: waits until FILE is there; gone: until the process is gone whose pid is in it; says: writes its pid into FILE once it holds all.
"""

import os
import pathlib
import sys
import time

import torch

wish = dict(word.split("=") for word in sys.argv[2:])


def lives(name):
    try:
        os.kill(int(pathlib.Path(name).read_text() or 0), 0)
        return True
    except ProcessLookupError:
        return False


while "after" in wish and not pathlib.Path(wish["after"]).exists():
    time.sleep(0.02)
while "gone" in wish and (not pathlib.Path(wish["gone"]).exists() or lives(wish["gone"])):
    time.sleep(0.02)
module = torch.nn.ReLU()
small = torch.ones(1024, device="cuda")
held = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
if "says" in wish:
    pathlib.Path(wish["says"] + ".new").write_text(str(os.getpid()))
    os.rename(wish["says"] + ".new", wish["says"])
count = 0
with torch.no_grad():
    while count < int(wish.get("passes", 1 << 60)):
        module(small)
        count += 1
sys.exit(int(wish.get("status", 0)))
