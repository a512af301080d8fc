"""Managed memory by the runtime's own call: 64 MiB and 32 MiB, the larger freed before the program ends."""

import ctypes

import torch

torch.zeros(1, device="cuda")
runtime = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line))
larger, smaller = ctypes.c_void_p(), ctypes.c_void_p()
before = torch.cuda.mem_get_info()
assert runtime.cudaMallocManaged(ctypes.byref(larger), ctypes.c_size_t(64 << 20), 1) == 0
assert runtime.cudaMallocManaged(ctypes.byref(smaller), ctypes.c_size_t(32 << 20), 1) == 0
assert runtime.cudaFree(larger) == 0
assert torch.cuda.mem_get_info() == before
ctypes.memset(smaller, 1, 32 << 20)
print("managed")
