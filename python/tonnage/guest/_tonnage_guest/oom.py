# SPDX-License-Identifier: Apache-2.0
"""The out-of-memory observer: what was asked, what was free, and whose line it was, before the stack unwinds.

PyTorch calls it for every out-of-memory, also for those that the program or cuDNN's fallback handles; which of them
ended the process is decided later (ending.py). An out-of-memory is *open* until progress follows it: a finished step, a test
that passed all the same, or new work: the program asked the allocator for 1 MiB and more after it (survived()). What a
handler does that reports one (words, a log, a loss that is read) asks for less.

Backward has no Python stack where autograd runs it in a thread of its own: the frame of the thread that called
backward stands in for it, and `backward` says so.
"""

import gc
import sys

from . import events, facts, frames, guard, history, holds, ledger, memory_log, metadata, peaks, phases, record, torchapi
from .state import settings, state

# PyTorch's own code catches an out-of-memory here, warns, and returns what has lost its tensors: (part of the path, function).
_SWALLOWED = (("/torch/distributed/fsdp/_state_dict_utils.py", "param_hook"),)
_MAX_PENDING = 256
_MOST_LOOKS = 16  # for a living exception: each goes through all that Python's collector knows
_LONGEST_CHAIN = 16  # of exceptions that were raised while another one was handled
_WORK = 1 << 20  # bytes asked for after an out-of-memory, by which a program has gone on


class _Observer:
    """One out-of-memory at a time: what is done for one may meet another."""

    __slots__ = ("busy", "looked_at", "looks")

    def __init__(self):
        self.busy = False
        self.looked_at = self.looks = 0  # how many out-of-memories there were as an exception was looked for last; how often it was


_observer = _Observer()


def attach(core, name):
    """Attaches the observer; torch has initialised CUDA."""
    getattr(core, name)(_observe)


def _observe(device, requested, total, free):
    if _observer.busy:
        return
    _observer.busy = True
    try:
        _seen(device, requested, free, frames.caller())
    finally:
        _observer.busy = False


def _observed(device, requested, free, frame):
    ledger.count_out_of_memory()
    state.ooms_seen += 1
    if state.result_lost:
        return  # the first one is told, and its record is kept
    found = describe(frame)
    found.update(device=int(device), requested_bytes=int(requested), free_bytes=int(free),
                 workspace=memory_log.is_workspace(int(requested)),
                 fraction=torchapi.memory_fraction(int(device)), vocabulary=facts.vocabulary_of(int(requested), holds.modules()))
    stats = torchapi.stats(device)
    if stats:
        found["allocated_bytes"] = stats["allocated_bytes"]["all"]["current"]
        found["reserved_bytes"] = stats["reserved_bytes"]["all"]["current"]
    peaks.read(everywhere=True)
    found["volume"] = peaks.volume()
    note(found)
    metadata.out_of_memories.append((metadata.now(), int(device), int(requested)))
    if _is_swallowed(found["stack"]):
        found["swallowed"] = state.result_lost = state.oom_ended_process = True
        state.final_oom = found
    if history.shows_out_of_memory(int(device)):
        found["largest_free_block_bytes"] = history.shown_largest_free()
        record.write_sometimes()
    else:
        events.memory_piles_up(frame)
        found["largest_free_block_bytes"] = history.at_out_of_memory(int(device))
        record.write_now()


_seen = guard.guarded(_observed)


def _is_swallowed(stack):
    names = ((row["file"], row["function"].rpartition(".")[2]) for row in stack)
    return any(part in file and function == name for file, name in names for part, function in _SWALLOWED)


def describe(frame):
    """An out-of-memory record with everything that the stack tells; figures are unknown yet."""
    stack = frames.stack(frame)
    backward = torchapi.in_backward() != -1
    at = frames.place(frame)
    own = any(row["function"] == "_engine_run_backward" for row in stack)
    if (at is None or backward) and not own:
        caller = frames.backward_caller()
        if caller is not None:
            backward = True
            stack = (stack + frames.stack(caller))[:frames.MAX_STACK]
            at = at if at is not None else frames.place(caller)
    return {
        "device": None, "requested_bytes": None, "free_bytes": None, "allocated_bytes": None, "reserved_bytes": None,
        "largest_free_block_bytes": None,
        "step": _step(backward),
        "phase": "backward" if backward else phase(stack) or state.phase,
        "at": frames.describe(at) if at is not None else None,
        "backward": backward,
        "stack": stack,
        "message": None,
        "computed": False,
        "workspace": False,
        "swallowed": False,
        "input": state.input,
        "vocabulary": None,
        "fraction": None,
    }


def _step(backward):
    if settings.requests:
        return state.request
    # Where forwards are the steps, the backward that follows one belongs to it.
    return state.steps if backward and state.unit == "forward" else state.steps + 1


def note(found):
    """Makes a record the open one."""
    state.open_oom = found
    if len(state.pending_ooms) < _MAX_PENDING:
        state.pending_ooms.append(found)


def survived():
    """True when the last out-of-memory is not open any more, since the program went on working on the card after it."""
    found = state.open_oom
    if found is None or "volume" not in found or found is state.final_oom:
        return False
    peaks.read(everywhere=True)
    return peaks.volume() - found["volume"] >= _WORK


def is_open():
    """True while the program has done nothing on the card since the last out-of-memory."""
    return state.open_oom is not None and not survived()


@guard.guarded
def _tries_again(frame):
    """A pass begins while an out-of-memory is open. While its exception is alive, the frames in its traceback keep their tensors alive, too.
    There is no Python exception where PyTorch itself caught the error in C++ and went on with a smaller cuDNN workspace."""
    if _observer.looked_at == state.ooms_seen or _observer.looks >= _MOST_LOOKS:
        return
    _observer.looked_at = state.ooms_seen
    _observer.looks += 1
    place = frames.place(frame)
    if _exception_lives() and place is not None:
        place = frames.describe(place)
        metadata.calls.append((metadata.now(), "exception_kept", place["file"], place["line"], place["function"]))


phases.on_another_try.append(_tries_again)


def _exception_lives():
    kind, error = state.torch.OutOfMemoryError, sys.exc_info()[1]
    for _ in range(_LONGEST_CHAIN):
        if error is None or isinstance(error, kind):
            break
        error = error.__context__ if error.__cause__ is None else error.__cause__
    if isinstance(error, kind):
        return True
    return any(issubclass(type(thing), kind) for thing in gc.get_objects())  # isinstance asks things what they are


@guard.alone
def progress(unit=None):
    """A step, a pass or a test was finished: the program lives, so what was open was handled."""
    count_handled()
    state.open_oom = None
    if not state.result_lost:
        history.out_of_memory_was_handled()


@guard.alone
def count_handled():
    """All that were seen since the last step, but for the one that ended the process, were handled."""
    _count(state.handled)
    state.pending_ooms.clear()


def handled():
    """(file, line, function, did a library ask) -> [count, requested bytes] of those that were handled until now."""
    rows = {key: list(row) for key, row in state.handled.items()}
    if survived():
        _count(rows)
    return rows


def _count(rows):
    for found in state.pending_ooms:
        if found is state.final_oom:
            continue
        at = found["at"] or {"file": None, "line": None, "function": None}
        key = at["file"], at["line"], at["function"], bool(found["workspace"])
        row = rows.setdefault(key, [0, found["requested_bytes"]])
        row[0] += 1
        row[1] = max(row[1] or 0, found["requested_bytes"] or 0) or None


# Innermost first: the first frame of torch that tells decides. Part of the path below torch/, function or None, phase.
_PHASES = (
    ("/torch/optim/optimizer.py", "_process_value_according_to_param_policy", "load"),  # of load_state_dict
    ("/torch/optim/", None, "optimizer"),
    ("/torch/amp/grad_scaler.py", None, "optimizer"),
    ("/torch/serialization.py", "load", "load"),
    ("/torch/serialization.py", "save", "save"),
    ("/torch/utils/data/", None, "data"),
    ("/torch/nn/modules/module.py", "_apply", "build"),
    ("/torch/nn/modules/module.py", "load_state_dict", "load"),
    ("/torch/nn/modules/module.py", "state_dict", "save"),
    ("/torch/nn/modules/module.py", "_call_impl", "forward"),
    ("/torch/nn/modules/module.py", "_wrapped_call_impl", "forward"),
    ("/torch/nn/init.py", None, "build"),
)


def _kind_of_forward():
    """Decided as the outermost call began: inside, a checkpointed part builds no graph either."""
    return state.phase if state.phase in ("forward", "evaluation") else phases.forward_name()


def phase(stack):
    """What the program was doing, by the frames of torch on its stack; None when they do not tell."""
    for row in stack:
        function = row["function"].rpartition(".")[2]
        for part, name, result in _PHASES:
            if part in row["file"] and (name is None or name == function):
                return _kind_of_forward() if result == "forward" else result
    return None
