# SPDX-License-Identifier: Apache-2.0
"""A FAKE of a program that changes can be tried on: takes memory of the virtual card as TONNAGE_CHANGES asks, and writes what
guest and changes would write. For `tonnage fix` and `tonnage fit` without PyTorch. It is run by fake_program.py, so that Python need not compile it each
time (conftest.py has).

    fake_program.py '{"base": 1, "sample": 1, "batch": 8, "possible": [...], "saves": {...}}' [BATCH]

selected: MiB that it takes of what --assume says is selected; base, sample, batch: MiB that it takes, and for each sample of a batch; possible: what the survey says; saves: {change: MiB};
refuses: changes that do not apply; inert: changes that act on nothing; idle: changes under which it does nothing; breaks: changes that make it fail; own: it fails by itself
where memory is enough; cache: MiB that it holds besides, and does without where they are not there; `--batch-size N` on the command line is the batch; sleep: seconds that it goes on for; fails: its own
status; command_line: what it says that it was given; pace: {change: what its updates are made of}, "" is the program as it is; second: what another rank,
1, says besides: {"pace": as above, "row": fields of what it says of its changes, "patch": its patch}; times: {change: how many times the arithmetic of a step}; oom: fields of the out-of-memory; input: what it must find on its standard input; gives_up: it handles that, does nothing more and ends with status 0. A BATCH on the command line is the batch.
"""
import ctypes
import json
import os
import sys
import time

import fake_guest

MIB = 1 << 20


def asked():
    """[(id, value)] of TONNAGE_CHANGES."""
    text = os.environ.get("TONNAGE_CHANGES", "")
    return [tuple((part + "=").split("=")[:2]) for part in text.split(",") if part]


def write(folder, document, name=""):
    path = os.path.join(os.environ["TONNAGE_RUN"], folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "%d%s.json" % (os.getpid(), name)), "w") as out:
        json.dump(document, out)


def tell_changes(wish, changes):
    rows = []
    for name, value in changes:
        if name == "survey":
            continue
        applied = name not in wish.get("refuses", ())
        rows.append({"id": name, "title": name, "value": value or None, "applied": applied,
                     "why_not": None if applied else "nothing to act on", "places": [], "effective": 0 if name in wish.get("inert", ()) else 1,
                     "how": "Do %s." % name, "environment": {}, "arguments": {}, "patch": None,
                     "results": wish.get("results", {}).get(name, "same")})  # fmt: skip
    facts = {"facts": {"batches": [wish["batch"]] if wish.get("batch") else [], "command_line": wish.get("command_line", sys.argv[1:])}, "possible": wish.get("possible", [])}
    tried, second = rows[0]["id"] if rows else "", wish.get("second")
    document = {"schema": "tonnage.changes/1", "pid": os.getpid(), "rank": None if second is None else 0, "changes": rows,
                "patch": "--- a\n+++ b\n@@ -1 +1 @@\n-%s\n+b\n" % tried if rows and rows[0]["applied"] else None,
                "pace": wish.get("pace", {}).get(tried), "survey": facts if ("survey", "") in changes else None}  # fmt: skip
    write("changes", document)
    if second is not None:
        told = [{**row, **second.get("row", {})} for row in rows]
        write("changes", {**document, "rank": 1, "survey": None, "changes": told, "patch": second.get("patch", document["patch"]),
                          "pace": second.get("pace", {}).get(tried)}, "-1")


def tell_work(wish, changes):
    """What the virtual GPU would write of three steps, the first of them another one."""
    flops = 1e13
    for name, value in changes:
        flops *= wish["times"].get(name, 1)
    path = os.path.join(os.environ["TONNAGE_RUN"], "work")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "%d.tsv" % os.getpid()), "w") as out:
        out.write("step\twhat\tbin\tcount\tflops\tbytes\n")
        for step, more in ((1, 5), (2, 1), (3, 1)):
            out.write("%d\thalf\t8\t100\t%.0f\t1000000\n" % (step, flops * more))


def size_of(wish, changes):
    batch = int(sys.argv[2]) if len(sys.argv) == 3 else wish.get("batch", 0)
    if "--batch-size" in sys.argv:
        batch = int(sys.argv[sys.argv.index("--batch-size") + 1])
    saved = 0
    for name, value in changes:
        if name == "batch":
            batch = int(value)
        elif name not in wish.get("refuses", ()):
            saved += wish.get("saves", {}).get(name, 0)
    selected = int(wish.get("selected", 0) * float(os.environ["TONNAGE_ASSUME"]))
    return (wish["base"] + wish.get("sample", 0) * batch + selected - saved) * MIB


def take(size):
    """True when the card gave it."""
    runtime = ctypes.CDLL(os.path.join(os.environ["TONNAGE_LIB"], "vgpu", "libcudart.so.13"))
    runtime.cudaFree(None)  # the context
    status = runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size))
    assert status in (0, fake_guest.OUT_OF_MEMORY), status
    return status == 0


def main():
    wish, changes = json.loads(sys.argv[1]), asked()
    if "input" in wish and sys.stdin.read() != wish["input"]:
        os._exit(3)
    tell_changes(wish, changes)
    if "times" in wish:
        tell_work(wish, changes)
    broken = any(name in wish.get("breaks", ()) for name, value in changes)
    if any(name in wish.get("idle", ()) for name, value in changes):
        os._exit(0)  # no card is used, and no guest tells of anything
    size = size_of(wish, changes)
    cache = wish.get("cache", 0) * MIB
    held = size + cache if cache and take(size + cache) else size
    fits = held > size or take(size)
    document = fake_guest.empty_document()
    document["devices"][0].update(reserved_peak=held if fits else 0, allocated_peak=size if fits else 0, requested_peak=size if fits else 0)
    own = bool(wish.get("own")) and fits and not broken
    if own:
        document["exception"] = {"type": "IndexError", "message": "its own", "at": None}
    if broken:
        document["exception"] = {"type": "ValueError", "message": "it broke", "at": None}
    elif not fits:
        document["out_of_memory_ended_process"] = not wish.get("gives_up")
        document["out_of_memory"] = {
            "device": 0, "requested_bytes": size, "free_bytes": None, "allocated_bytes": 0, "reserved_bytes": 0,
            "largest_free_block_bytes": None, "step": 1, "phase": "forward", "stack": [], "message": "out",
            "at": {"file": "/x/train.py", "line": 7, "function": "f"}, "backward": False, "computed": False,
            **wish.get("oom", {}),
        }  # fmt: skip
    write("guest", document)
    time.sleep(wish.get("sleep", 0))
    print("words of the program", file=sys.stderr)
    os._exit(wish.get("fails", 0) or (3 if broken or own else 0 if fits or wish.get("gives_up") else 1))
