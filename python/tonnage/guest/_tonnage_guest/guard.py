# SPDX-License-Identifier: Apache-2.0
"""No error of ours reaches the program, and one sensor's error is that sensor's alone.

A sensor is a part of the hook that learns one kind of thing (SENSORS). Its first error switches it off for good in this
process, with one line on stderr; the others go on, and guest/<pid>.json says which are lost (doc/format/run.schema.json,
`sensors`). Only Exception is caught: Ctrl-C belongs to the program. An error that the program's own state causes (no room
on the stack, no memory) is no fault of a sensor: that one call is left out.

    guarded   a callback that torch, Python or the program calls
    alone     a function of one sensor that another sensor's callback calls
    attempt   a step of the hook's own start
Invariant: what these make never raises an Exception, on any thread, whether it has Python frames or not.
"""

import functools
import gc
import sys

from .state import state

# name, modules of this package, what is missing without it
SENSORS = (
    ("steps", ("steps", "optimizers", "settle", "growth", "step_growth", "record", "ledger", "news"), "steps are not counted, so the run does not end when memory has settled"),
    ("calls", ("calls",), "calls of modules and compiled functions are not seen: forward passes count for no step"),
    ("requests", ("serving",), "requests are not told apart, nor whether memory grows with them"),
    ("phases", ("phases", "regions", "left"), "forward, backward, evaluation and their peaks are not told apart"),
    ("trainings", ("trainings", "earlier"), "what one training leaves for the next is not told"),
    ("cells", ("cells", "cell_holders", "let_go"), "cells of a notebook are not told apart, nor what holds memory between them"),
    ("inputs", ("inputs", "shapes"), "inputs are counted as temporaries, and new shapes of inputs are not noticed"),
    ("holders", ("holds", "gathered", "loaded"), "parameters, gradients and optimizer state are counted as temporaries"),
    ("backward", ("backward", "graph", "recomputed", "unused"), "what is kept for backward is inferred from when it is freed"),
    ("history", ("history", "metadata", "memory_log"), "what memory is for, and whose line allocated it, is unknown"),
    ("allocator", ("peaks",), "peaks before a reset of torch's statistics by the program are unknown"),
    ("out_of_memory", ("oom",), "an out-of-memory error has no line, and handled ones are not counted"),
    ("reads", ("reads", "assumptions"), "values that were read back and that no kernel computed are not listed"),
    ("usage", ("usage", "retainers"), "advice on zero_grad, empty_cache and pinned memory is missing"),
    ("facts", ("facts",), "advice may name what the program does already"),
    ("loaders", ("fast_forward", "epochs", "loaders", "consumers", "trainers", "workers", "again"), "epochs are not ended early, so the run takes longer"),
    ("later_rounds", ("later_rounds", "reckoned"), "what later epochs do is not told from the program's text"),
    ("host_memory", ("host",), "what the workers of data loaders hold ready may be missing from --host-memory"),
    ("lengths", ("ahead", "lengths", "looks", "padding", "worst_first"), "longer inputs that come later are not known, and --inputs has no effect"),
    ("values", ("values", "generation"), "computed values are zero where a likely value is given otherwise"),
    ("initialization", ("init", "pages", "predicates"), "random initialisation on the CPU runs in full, so the run takes longer"),
    ("uploads", ("uploads", "trackers", "downloads", "held", "files"), "libraries that upload or write files past the C library are not held back here"),
    ("fetched", ("fetched",), "models that tonnage fetch has fetched are not found"),
    ("pretrained", ("pretrained",), "a program ends where torch.hub cannot download weights"),
    ("made_data", ("made_data", "made_sets", "made_tables", "image_sizes"), "data is read and decoded as it is"),
    ("four_bits", ("four_bits",), "checkpoints quantised by bitsandbytes are not loaded from their headers"),
    ("ending", ("ending",), "what ended the program is judged by its exit status alone"),
    ("compiled_lines", ("generated",), "memory of compiled code is named by the call, not by the line it was compiled from"),
    ("compilers", ("compiling", "uncompiled"), "the time limit does not wait while the program compiles"),
    ("absent_ranks", ("absent", "launching"), "ranks of a job that are not run are waited for"),
    ("ports", ("ports",), "trials that meet at a port that the program names disturb each other"),
    ("work", ("work", "collectives", "ranks"), "there is no estimate of the time of a step"),
)  # fmt: skip

_NAMES = {module: name for name, modules, _ in SENSORS for module in modules}
_COSTS = {name: costs for name, _, costs in SENSORS}
_UNKNOWN = "what this part of the hook records is missing"

on_disarm = []  # called when the hook as a whole stops
on_lost = []  # called when a sensor is lost
_undo = {}  # sensor -> what is undone when it is lost


def sensor_of(function):
    """The name of the sensor that a function of this package belongs to."""
    module = getattr(function, "__module__", None) or ""
    stem = module.rpartition(".")[2]
    return _NAMES.get(stem, stem)


def guarded(function):
    """Makes `function` a callback that is silent when disarmed and never raises. Returns None in both cases."""
    sensor = sensor_of(function)
    lost = state.lost

    def call(*args):
        if not state.armed or sensor in lost:
            return None
        try:
            return function(*args)
        except Exception as error:
            lose(sensor, error)
            return None

    # torch.compile must not trace into a callback of ours.
    call._torchdynamo_disable = True
    call.__name__ = function.__name__
    call.__module__ = function.__module__
    call.__wrapped__ = function
    callbacks.append(call)
    return call


callbacks = []  # every guarded one, for tests


def alone(function):
    """Makes `function` one that fails alone: None when it raises or its sensor is lost."""
    sensor = sensor_of(function)
    lost = state.lost

    @functools.wraps(function)
    def call(*args, **kwargs):
        if sensor in lost:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            lose(sensor, error)
            return None

    return call


def attempt(function, *args):
    """Calls a part of the start; an error loses its sensor. True when the sensor is there."""
    sensor = sensor_of(function)
    try:
        found = function(*args)
    except Exception as error:
        lose(sensor, error)
        return False
    if found is False:
        state.absent.add(sensor)
    else:
        state.attached.add(sensor)
    return sensor not in state.lost


def when_lost(sensor, undo):
    """Calls undo() when the sensor of this name is lost, or the whole hook is."""
    _undo.setdefault(sensor, []).append(undo)


def lose(sensor, error):
    """Switches a sensor off for good in this process and says so, once."""
    if isinstance(error, (RecursionError, MemoryError)) or sensor in state.lost:
        return
    state.lost[sensor] = _one_line(error)[:300]
    _say("tonnage: one sensor of the hook stopped (%s): %s%s\n" % (sensor, state.lost[sensor], _place(error)))
    _undo_all(_undo.pop(sensor, ()))
    _undo_all(on_lost)


def uncollected(function):
    """For functions that make many objects, none of them garbage: the collector, which would go through the whole
    program's for them, waits until they are done."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return call


def disarm(error):
    """Stops recording for good in this process and says so, once: the hook itself could not be set up."""
    if state.hook_error is not None:
        return
    state.hook_error = _one_line(error)[:300]
    _say("tonnage: the hook stopped recording: %s%s\n" % (state.hook_error, _place(error)))
    for undone in list(_undo.values()):
        _undo_all(undone)
    _undo_all(on_disarm)
    state.armed = False


def document():
    """The "sensors" of the guest document: [{"name", "state", "costs", "error"}]."""
    rows = []
    for name, _, costs in SENSORS:
        if name in state.lost:
            rows.append({"name": name, "state": "lost", "costs": costs, "error": state.lost[name]})
        elif name in state.attached:
            missing = "; ".join(state.missing.get(name, ())) or None  # of a part of it
            rows.append({"name": name, "state": "attached", "costs": missing, "error": None})
        elif name in state.absent or name in state.missing:
            rows.append({"name": name, "state": "absent", "costs": costs, "error": None})
    rows.extend({"name": name, "state": "lost", "costs": _UNKNOWN, "error": error}
                for name, error in state.lost.items() if name not in _COSTS)  # fmt: skip
    return rows


def _undo_all(functions):
    for undo in functions:
        try:
            undo()
        except Exception:
            pass


def _say(line):
    try:
        sys.stderr.write(line)
    except Exception:
        pass


def _one_line(error):
    return "%s: %s" % (type(error).__name__, " ".join(str(error).split()))


def _place(error):
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return " (%s:%d)" % (trace.tb_frame.f_code.co_filename.rpartition("/")[2], trace.tb_lineno)
