# SPDX-License-Identifier: Apache-2.0
"""`%load_ext tonnage`, then `%%tonnage [--gpu NAME]`: the peak of a cell, and what it left behind (doc/design/0033-notebooks.md).

The peak is PyTorch's own counter, which is reset as the cell begins. What it left behind are bytes that it made and that are alive at its end: inside
a run Tonnage's hook tells; else PyTorch's history is recorded meanwhile, without stacks, unless somebody records already: then it is the
difference that is told. Nothing here raises but what the cell raises.
"""

import json
import os
import shutil
import subprocess
import sys

_ENTRIES = 1000000  # of PyTorch's history: more than that, and the difference is told
_NO_CARD = ("tonnage: no GPU is in use here: `tonnage run --gpu %s NOTEBOOK.ipynb` runs the notebook on a virtual one, and says this of each cell")
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def register(shell):
    """Called by %load_ext."""
    shell.register_magic_function(lambda line, cell: _tonnage(shell, line, cell), "cell", "tonnage")


def _tonnage(shell, line, cell):
    try:
        gpu = _gpu_of(line)
    except ValueError as wrong:
        print("tonnage: %s" % wrong, file=sys.stderr)
        return
    watch = _Watch()
    show, shell._showtraceback = shell._showtraceback, lambda *ignored: None  # shown once, by the cell that this is in
    try:
        result = shell.run_cell(cell)
    finally:
        shell._showtraceback = show
    try:
        watch.say(gpu)
    except Exception as error:
        print("tonnage: the cell's memory is not known: %s: %s" % (type(error).__name__, error), file=sys.stderr)
    result.raise_error()


def _gpu_of(line):
    words = line.replace("=", " ").split()
    if not words:
        return None
    if len(words) != 2 or words[0] != "--gpu":
        raise ValueError("%%%%tonnage takes --gpu NAME, and nothing else: not \"%s\"" % line.strip())
    return words[1]


class _Watch:
    """What PyTorch's allocators held as the cell began, and what is asked at its end."""

    def __init__(self):
        self.devices, self.allocated, self.blocks, self.recording = 0, {}, {}, False
        try:
            self._begin()
        except Exception as error:
            print("tonnage: the cell's memory is not watched: %s: %s" % (type(error).__name__, error), file=sys.stderr)

    def _begin(self):
        cuda = _cuda()
        if cuda is None:
            return
        self.devices = cuda.device_count()
        for index in range(self.devices):
            self.allocated[index] = cuda.memory_allocated(index)
            cuda.reset_peak_memory_stats(index)
        if not _is_recorded(cuda):
            self.blocks = _blocks(cuda.memory_snapshot())
            cuda.memory._record_memory_history("all", context=None, max_entries=_ENTRIES)
            self.recording = True

    def say(self, gpu):
        cuda = _cuda()
        if cuda is None:
            print(_NO_CARD % (gpu or "rtx3060"))
            return
        made, exact = self._made(cuda)
        peaks = [(cuda.max_memory_allocated(i), cuda.max_memory_reserved(i), i) for i in range(cuda.device_count())]
        peaks = [row for row in peaks if row[1] > 0] or peaks[:1]
        for allocated, reserved, index in peaks:
            where = "  (cuda:%d)" % index if len(peaks) > 1 else ""
            print("peak         %s allocated, %s reserved by PyTorch%s" % (_bytes(allocated), _bytes(reserved), where))
        print("left behind  %s" % _bytes(made) if exact else "left behind  %s more than before" % _bytes(made) if made >= 0 else
              "left behind  nothing: %s less than before" % _bytes(-made))
        if gpu is not None:
            print(_held_against(gpu, max(reserved for _, reserved, _ in peaks)))

    def _made(self, cuda):
        """(bytes, are they what the cell made and is alive)"""
        hook = _hook()
        made = hook() if hook is not None else None
        if made is None and self.recording:
            made = self._made_by_history(cuda)
        if made is not None:
            return made, True
        return sum(cuda.memory_allocated(i) - self.allocated.get(i, 0) for i in range(cuda.device_count())), False

    def _made_by_history(self, cuda):
        snapshot = cuda.memory._snapshot()
        cuda.memory._record_memory_history(None)
        old = dict(self.blocks)
        for device, trace in enumerate(snapshot["device_traces"]):
            if len(trace) >= _ENTRIES:
                return None
            for event in trace:
                if event["action"] in ("alloc", "free_completed"):
                    old.pop((device, event["addr"]), None)
        return sum(size for key, size in _blocks(snapshot["segments"]).items() if key not in old)


def _cuda():
    """torch.cuda, where the program uses a card."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _hook():
    """Inside a run: what tells how much the cell has made that is alive."""
    left = sys.modules.get("_tonnage_guest.left")
    return getattr(left, "made_so_far", None)


def _is_recorded(cuda):
    """Somebody else records PyTorch's history, or nobody can tell."""
    enabled = getattr(sys.modules["torch"]._C, "_cuda_isHistoryEnabled", None)
    return enabled is None or bool(enabled())


def _blocks(segments):
    """{(device, address): bytes} of what is alive."""
    found = {}
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found[segment.get("device", 0), block["address"]] = block["size"]
    return found


# ---- a card of the catalogue ----


def _held_against(gpu, reserved):
    card = _card(gpu)
    if card is None:
        return "tonnage: the card \"%s\" is not known (tonnage gpus lists them), or the command tonnage is not on the PATH" % gpu
    total, context = card["total_bytes"]["value"], card["context_bytes"]["value"] or 0
    fits = reserved + context <= total
    return "%s %s: %s with its context, of %s" % ("fits" if fits else "does not fit", card.get("name", gpu), _bytes(reserved + context), _bytes(total))


def _card(gpu):
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(os.path.dirname(sys.executable), "tonnage")
    built = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "bin", "tonnage")  # of a checkout
    command = next((path for path in (beside, shutil.which("tonnage"), built) if path and os.access(path, os.X_OK)), None)
    if command is None:
        return None
    done = subprocess.run([command, "gpus", "--json"], capture_output=True, text=True)
    rows = json.loads(done.stdout).get("gpus", ()) if done.returncode == 0 else ()
    wanted = gpu.lower()
    return next((row for row in rows if wanted == row["name"].lower() or wanted in row.get("aliases", ())), None)


def _bytes(size):
    for unit, name in _UNITS:
        if size >= unit:
            return "%.2f %s" % (size / unit, name) if name == "GiB" else "%.1f %s" % (size / unit, name)
    return "%d B" % size
