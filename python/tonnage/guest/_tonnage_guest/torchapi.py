# SPDX-License-Identifier: Apache-2.0
"""Every private name of torch that the hook uses, each guarded, by version (2.6.0 to 2.15.0).

A name that is missing makes its function return None or do nothing: the report then says unknown, not zero.
Nothing here initialises CUDA.
"""

from .state import state


def core():
    """torch._C"""
    return state.torch._C


def text_of(file):
    """The text of one of torch's own files."""
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def is_cuda_build():
    """False for a CPU-only (or ROCm) build."""
    return getattr(state.torch.version, "cuda", None) is not None and hasattr(core(), "_cuda_getDeviceCount")


def versions():
    """(torch, CUDA, cuDNN) as the program would print them; unknown is None."""
    version = state.torch.version
    return str(state.torch.__version__), getattr(version, "cuda", None), _cudnn()


def release():
    """(major, minor) of torch."""
    major, minor = str(state.torch.__version__).split(".")[:2]
    return int(major), int(minor)


def _cudnn():
    try:
        major, minor, patch = core()._cudnn.getCompileVersion()
    except Exception:
        return None
    return major * 10000 + minor * 100 + patch if major >= 9 else major * 1000 + minor * 100 + patch


def architectures():
    """What the wheel has kernels for, as nvcc calls it ("sm_90", "compute_90"); nothing where that is unknown, or CUDA not
    initialised: the question marks a process as one that must not fork."""
    if not state.cuda_initialized:
        return []
    flags = getattr(core(), "_cuda_getArchFlags", None)
    return ((flags() or "").split() if flags is not None else [])[:32]


def queue_at_cuda_init(callback):
    """Runs callback() while torch initialises CUDA. Goes round torch.cuda._lazy_call, which formats a traceback."""
    cuda = state.torch.cuda
    queue = getattr(cuda, "_queued_calls", None)
    if isinstance(queue, list) and not cuda.is_initialized():
        queue.append((callback, []))
    else:
        cuda._lazy_call(callback)


def device_count():
    """Devices that torch sees."""
    count = getattr(core(), "_cuda_getDeviceCount", None)
    return int(count()) if count is not None else 0


def stats(device):
    """The allocator's nested statistics of a device, or None where the allocator keeps none."""
    try:
        return core()._cuda_memoryStats(device)
    except Exception:
        return None


def allocated():
    """Bytes allocated now on the current device; 0 where nothing tells."""
    found = _current_stats()
    return found["allocated_bytes"]["all"]["current"] if found else 0


def allocations():
    """How many allocations were made on the current device so far; 0 where nothing tells."""
    found = _current_stats()
    return found["allocation"]["all"]["allocated"] if found else 0


def _current_stats():
    device = getattr(core(), "_cuda_getDevice", None)
    return stats(device()) if device is not None else None


def total_memory(device):
    """Bytes of a device; 0 where nothing tells."""
    try:
        return int(state.torch.cuda.get_device_properties(device).total_memory)
    except Exception:
        return 0


def memory_fraction(device):
    """The share of the card that the allocator may use, as the program has set it; None where nothing tells."""
    fraction = getattr(core(), "_cuda_getMemoryFraction", None)
    try:
        return float(fraction(device)) if fraction is not None else None
    except Exception:
        return None


def reads_saved_tensors_without_unpacking():
    """True where torch tells what a saved tensor is without running somebody's hook (2.8 and later)."""
    return hasattr(core()._autograd.SavedTensor, "unpack_hook")


def saved_tensor(node, name, saved, index, in_list):
    """The tensor behind one `_raw_saved_...` attribute of a node, or None where hooks have packed it."""
    if hasattr(saved, "unpack_hook"):
        value = saved.data if saved.unpack_hook is None else None
    else:
        value = getattr(node, name[len("_raw"):] if hasattr(type(node), name[len("_raw"):]) else "saved_tensors")
        value = value[index] if in_list else value
    return value if isinstance(value, state.torch.Tensor) else None


def in_backward():
    """The number of the running autograd pass of this thread, or -1."""
    task = getattr(core(), "_current_graph_task_id", None)
    return task() if task is not None else -1
