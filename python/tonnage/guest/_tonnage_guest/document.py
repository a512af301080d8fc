# SPDX-License-Identifier: Apache-2.0
"""The contents of guest/<pid>.json: what the recorders know (doc/design/0002-run-protocol.md)."""

import os
import sys
import time

from . import ahead, facts, fast_forward, growth, guard, host, oom, peaks, reads, torchapi, trainings, usage
from .state import settings, state

_SCHEMA = "tonnage.guest/1"


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
            "not_seen": fast_forward.not_seen() + state.not_reached,
            "batch_size": state.batch_size,
        },
        "program": settings.program,
        "passes": state.complete_passes,
        "inputs": ahead.document() if state.torch is not None else None,
        "loaders": host.document(),
        "cards": state.device_count,
        "devices": peaks.document(),
        "out_of_memory": {name: value for name, value in last.items() if name != "volume"} if last else None,
        "out_of_memory_ended_process": state.oom_ended_process,
        "handled_out_of_memory": _handled(),
        "growth": growth.document(),
        "fast_forward_failed": state.fast_forward_failed,
        "computed_reads": _reads(),
        "assumptions": reads.document(),
        "connected": state.connected,
        "computed_reads_saved": state.reads_saved,
        "exception": state.exception,
        "left_at": state.left_at,
        "failed_at_ns": state.failed_at_ns,
        "init_skipped": {"tensors": state.init_tensors, "bytes": state.init_bytes},
        "usage": usage.document(),
        "facts": facts.document() if state.torch is not None else None,
        "kept": state.kept,
        "snapshot": state.snapshot,
        "peak_snapshot": state.peak_snapshot,
        "oom_snapshot": state.oom_snapshot,
        "regions": state.regions,
        "cells": state.cells,
        "cell_holders": list(state.holders.values()),
        "trainings": trainings.document() if state.torch is not None else None,
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
