"""Pins 192 MiB by the driver API alone, in six blocks, and ends when the supervisor has looked at them (--host-memory)."""

import ctypes
import os
import time

from _tonnage_guest import ledger

cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(6):
    assert cuda.cuMemHostAlloc(ctypes.byref(block), ctypes.c_size_t(32 << 20), 0) == 0
ledger.attach(os.environ["TONNAGE_RUN"])
ledger.ask_for_a_look()
while ledger.is_asked():
    time.sleep(0.01)
looks = ledger.host_looks()
while ledger.host_looks() < looks + 2:
    time.sleep(0.01)
