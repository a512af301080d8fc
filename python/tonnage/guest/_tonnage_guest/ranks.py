# SPDX-License-Identifier: Apache-2.0
"""This process among the ranks of a job: when all have seen enough, and where the program is while it waits for another.

libtonnage-vgpu.so calls us when this process has waited for another rank for a second, on the thread that waits; ctypes takes the
interpreter lock, so the library must hold no lock of its own meanwhile.
"""

import ctypes
import functools
import sys
import threading

from . import frames, guard, torchapi, virtual
from .state import settings, state

_COUNTS = (("allocation", "allocated"), ("allocated_bytes", "allocated"), ("allocated_bytes", "peak"), ("requested_bytes", "peak"))
_NETWORK = ("gloo", "mpi", "ucc")  # backends for tensors on the CPU


class _Library:
    """What the virtual GPU has for this."""

    __slots__ = ("callback", "settled", "step")

    def __init__(self):
        self.callback = None  # ours; kept: the library holds its address
        self.settled = None
        self.step = None


_library = _Library()


def attach():
    """Registers with the virtual GPU, if there is one."""
    observe = virtual.function("tn_vgpu_set_wait_observer", None, ctypes.c_void_p)
    if observe is None:
        return
    _library.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32))(_waits)
    observe(ctypes.cast(_library.callback, ctypes.c_void_p))
    _library.settled = virtual.function("tn_vgpu_settled", ctypes.c_int)
    if settings.some_ranks:
        _library.step = virtual.function("tn_vgpu_rank_step", None, ctypes.c_uint64, ctypes.c_uint64)


def detach():
    """The library calls us no more."""
    observe = virtual.function("tn_vgpu_set_wait_observer", None, ctypes.c_void_p)
    if observe is not None:
        observe(None)


def watch_groups(module, name):
    """Attaches to the function that makes every process group: the first one, of all ranks, says how many the job has. Those that talk
    over the network alone need not use a card at all, and are not waited for."""
    join = virtual.function("tn_vgpu_join_job", None, ctypes.c_int)
    if join is None:
        return
    original = getattr(module, name)

    @functools.wraps(original)
    def helper(group_size, group_rank, global_ranks_in_group, backend, *args, **kwargs):
        if not global_ranks_in_group and group_size > 1 and str(backend).lower() not in _NETWORK:
            join(group_size)
        return original(group_size, group_rank, global_ranks_in_group, backend, *args, **kwargs)

    setattr(module, name, helper)


def all_settled():
    """Says that this rank has seen enough. True when all have, or there is but one."""
    return _library.settled is None or _library.settled() != 0


@guard.guarded
def step_ended(step):
    """What this rank did up to here is compared with what others did."""
    if _library.step is not None:
        _library.step(step.number, _allocations())


def _allocations():
    """One number for all that PyTorch's allocator gave out so far: how many blocks, how many bytes, and the most at a time."""
    number = 1
    devices = [torchapi.stats(device) or {} for device in state.peaks]
    for kind, name in _COUNTS:
        count = sum(stats.get(kind, {}).get("all", {}).get(name, 0) for stats in devices)
        number = (number * 1000003 ^ count) & 0xFFFFFFFFFFFFFFFF
    return number


def _place():
    """The program's line on this thread, or where the thread that it waits for is: autograd's has no Python frames."""
    frame = sys._getframe(0)
    while frame is not None and frames.kind(frame.f_code) is frames.OWN:
        frame = frame.f_back
    if frame is None:
        frame = frames.backward_caller() or frames.of_threads().get(threading.main_thread().ident)
    return frames.place(frame) if frame is not None else None


@guard.guarded
def _waits(file, room, line):
    place = _place()
    if place is None:
        return
    file_name, number = frames.site(place)
    name = file_name.encode("utf-8", "replace")[:room - 1]
    ctypes.memmove(file, name + b"\0", len(name) + 1)
    line[0] = number
