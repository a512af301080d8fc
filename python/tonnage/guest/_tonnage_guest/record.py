# SPDX-License-Identifier: Apache-2.0
"""guest/<pid>.json: what this process learnt, as doc/design/0002-run-protocol.md says, replaced atomically.

The functions of os are taken at import time, so that a program that replaces them (mock file systems) does not meet us.
"""

import _thread
import json
import os
import sys
import time

from . import facts, growth, guard, habits, oom, peaks, reads, rehearse, torchapi
from .state import settings, state

_SCHEMA = "tonnage.guest/1"
_EVERY = 0.5  # seconds between writes that nothing important asks for
_open, _write, _close, _replace, _makedirs = os.open, os.write, os.close, os.replace, os.makedirs

_last_write = 0.0


def write_now():
    """Writes the file at once."""
    global _last_write
    if not settings.run:
        return
    _last_write = time.monotonic()
    write_file(os.path.join(settings.run, "guest"), "%d.json" % state.pid, json.dumps(document()).encode())


def write_sometimes():
    """Writes the file unless that was done less than half a second ago."""
    if time.monotonic() - _last_write >= _EVERY:
        write_now()


def write_file(folder, name, data):
    """Puts `data` into folder/name by way of a temporary name, so that no reader sees half of it."""
    path = os.path.join(folder, name)
    part = "%s.%d.part" % (path, _thread.get_ident())  # threads may write at once: the last one whole counts
    try:
        handle = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        _makedirs(folder, 0o700, exist_ok=True)
        handle = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[_write(handle, view):]
    finally:
        _close(handle)
    _replace(part, path)


def document():
    """The whole document as a dictionary."""
    torch, cuda, cudnn = torchapi.versions() if state.torch is not None else (None, None, None)
    last = state.final_oom or (state.open_oom if oom.is_open() else None)
    return {
        "schema": _SCHEMA,
        "pid": state.pid,
        "parent": os.getppid(),
        "started": state.started_at,
        "written": time.time(),
        "argv": [str(word) for word in getattr(sys, "argv", [])][:64],
        "rank": state.rank,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "torch": torch,
        "cuda": cuda,
        "cudnn": cudnn,
        "cuda_initialized": state.cuda_initialized,
        "steps": {
            "seen": state.steps,
            "unit": state.unit,
            "stopped": state.stopped,
            "input_shapes": len(state.shapes) if state.shapes_visible else None,
            "not_seen": rehearse.not_seen(),
            "batch_size": state.batch_size,
        },
        "devices": peaks.document(),
        "out_of_memory": {name: value for name, value in last.items() if name != "volume"} if last else None,
        "out_of_memory_ended_process": state.oom_ended_process,
        "handled_out_of_memory": _handled(),
        "growth": growth.document(),
        "rehearsal_broken": state.rehearsal_broken,
        "computed_reads": _reads(),
        "assumptions": reads.document(),
        "connected": state.connected,
        "computed_reads_saved": state.reads_saved,
        "exception": state.exception,
        "left_at": state.left_at,
        "init_skipped": {"tensors": state.init_tensors, "bytes": state.init_bytes},
        "habits": habits.document(),
        "facts": facts.document() if state.torch is not None else None,
        "kept": state.kept,
        "snapshot": state.snapshot,
        "peak_snapshot": state.peak_snapshot,
        "oom_snapshot": state.oom_snapshot,
        "regions": state.regions,
        "hook_error": state.hook_error,
        "sensors": guard.document(),
        "seconds": _seconds(),
    }


def _handled():
    return [
        {"file": key[0], "line": key[1], "function": key[2], "workspace": key[3], "count": count,
         "requested_bytes": requested}
        for key, (count, requested) in oom.handled().items()
    ]


def _reads():
    return [{"file": file, "line": line, "count": count} for (file, line), count in reads.counts()]


def _seconds():
    now = time.monotonic()
    ended = state.last_import or now
    return {"imports": round(ended - state.started, 3), "after_imports": round(now - ended, 3)}
