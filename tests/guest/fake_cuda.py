# SPDX-License-Identifier: Apache-2.0
"""A FAKE of the allocator behind torch._C, for tests of the hook on a machine without any GPU, virtual or real.

`start()` does what CUDA's initialisation would: it runs what the hook put into torch's queue. `use(bytes)` and
`free(bytes)` move the counters; `run_out(bytes)` calls the attached observers and raises as torch does.
"""

import torch

observers = []
recordings = []
counters = {"current": 0, "peak": 0, "allocated": 0}
ooms = 0


def _stats(device):
    row = {"all": dict(counters, freed=0)}
    return {"allocated_bytes": row, "reserved_bytes": row, "requested_bytes": row, "num_alloc_retries": 0,
            "num_ooms": ooms}  # fmt: skip


def _snapshot(pool=None):
    block = {"size": 4096, "requested_size": 4000, "address": 1, "state": "inactive", "frames": [{"line": 1}]}
    return {"segments": [{"device": 0, "blocks": [block]}], "device_traces": [[{"action": "alloc"}]]}


def _record(*args):
    recordings.append(args)


def start():
    core = torch._C
    core._cuda_memoryStats = _stats
    core._cuda_memorySnapshot = _snapshot
    core._cuda_record_memory_history = _record
    core._cuda_attach_out_of_memory_observer = observers.append
    core._cuda_getDeviceCount = lambda: 1
    for callback, _ in list(torch.cuda._queued_calls):
        if "_tonnage_guest" in getattr(callback, "__module__", ""):
            callback()


def use(size):
    counters["current"] += size
    counters["allocated"] += size
    counters["peak"] = max(counters["peak"], counters["current"])


def free(size):
    counters["current"] -= size


def run_out(size, free_bytes=5):
    global ooms
    ooms += 1
    for observer in observers:
        observer(0, size, 1000, free_bytes)
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.\nGPU 0 has ...")
