# SPDX-License-Identifier: Apache-2.0
"""What is found as torch is imported, as JSON. With the argument `alone` only what can be asked without the hook."""

import gc
import importlib
import json
import os
import sys
import warnings

found = {}
looks, full = [], []


def look(phase, info):
    if phase == "start":
        looks.append(info["generation"])
        if info["generation"] == 2:
            full.append(len(looks))


def made_between_full_looks():
    """Objects, until the second one from now: the first comes earlier or later."""
    kept = []
    for _ in range(2):
        made, seen = 0, len(full)
        while len(full) == seen:
            kept.append([])
            made += 1
    return made


def looks_at_cycles():
    """Whether Python looks for as many as in a program without torch."""
    before = len(looks)
    loops = [[] for _ in range(100000)]
    for loop in loops:
        loop.append(loop)
    return len(looks) > before + 100


def status_of_a_worker():
    pid = os.fork()
    if pid == 0:
        torch.empty(2000, 2000).normal_()
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def places():
    """Every place that the hook changes in this torch, imported one by one: module, name, whether it is there."""
    warnings.simplefilter("ignore")
    points, release = (importlib.import_module("_tonnage_guest." + name) for name in ("points", "torchapi"))
    for point in points.TABLE:
        if points.is_expected(point, release.release()):
            owner, _ = points.find(point, importlib.import_module(point.module))
            yield point.module, point.name, owner is not None


gc.callbacks.append(look)
import torch  # noqa: E402

found["drawn"] = str([torch.initial_seed(), torch.rand(3), torch.randperm(9)])
found["full looks"], found["collects"] = len(full), gc.isenabled()
torch.optim.SGD([torch.ones(1, requires_grad=True)], 1.0)
found["compiler"] = "torch._dynamo" in sys.modules
found["made"] = made_between_full_looks()
if "alone" not in sys.argv:
    found["looks at cycles"] = looks_at_cycles()
    gc.disable()
    import torch._dynamo  # noqa: F401

    found["collects when switched off"] = gc.isenabled()
    gc.enable()
    found["loader"] = type(torch.__loader__).__name__
    found["worker"] = status_of_a_worker()
    found["places"] = list(places())
    state = sys.modules["_tonnage_guest.state"].state
    found["lost"] = [state.missing, state.lost]
print(json.dumps(found))
