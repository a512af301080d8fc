"""Holds a gibibyte by the driver API alone, for a minute."""

import ctypes
import time

cuda = ctypes.CDLL("libcuda.so.1")
context, held = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(1 << 30)) == 0
print("held", flush=True)
time.sleep(60)
