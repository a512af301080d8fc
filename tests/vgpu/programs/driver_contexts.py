"""What numba's context code does, by the driver API alone; and names that have later versions with other arguments."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context, popped, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(-1)


def check(result, wanted=0):
    assert result == wanted, (result, wanted)


check(cuda.cuInit(0))
check(cuda.cuCtxPopCurrent_v2(ctypes.byref(popped)), 201)
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuCtxPopCurrent_v2(ctypes.byref(popped)))
assert popped.value == context.value
check(cuda.cuCtxGetCurrent(ctypes.byref(popped)))
assert popped.value is None
check(cuda.cuCtxPushCurrent_v2(context))
for version in (12090, 13000):
    found = ctypes.c_void_p()
    check(cuda.cuGetProcAddress(b"cuCtxGetDevice", ctypes.byref(found), version, ctypes.c_ulonglong(0)))
    get_device = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(found.value)
    check(get_device(ctypes.byref(device)))
    assert device.value == 0
check(cuda.cuCtxGetDevice_v2(ctypes.byref(device), context))
assert device.value == 0
print("contexts as documented")
