# SPDX-License-Identifier: Apache-2.0
"""What numba's compiler does with the driver's linker, by the driver API alone; with launch of what was linked."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context, link, module, function = (ctypes.c_void_p() for _ in range(4))
image, size = ctypes.c_void_p(), ctypes.c_size_t()
PIECE = b".version 8.0\n.visible .entry one() { ret; }\0"


def check(result, wanted=0):
    assert result == wanted, (result, wanted)


def add(piece, length):
    return cuda.cuLinkAddData_v2(link, 1, piece, ctypes.c_size_t(length), b"one", 0, None, None)


check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuLinkCreate_v2(0, None, None, None), 1)
check(cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(link)))
check(cuda.cuLinkComplete(link, ctypes.byref(image), ctypes.byref(size)), 1)
check(add(None, 4), 1)
check(add(PIECE, len(PIECE)))
check(cuda.cuLinkAddFile_v2(link, 1, b"/nowhere.ptx", 0, None, None), 301)
check(add(PIECE, len(PIECE)))
check(cuda.cuLinkComplete(link, ctypes.byref(image), ctypes.byref(size)))
assert ctypes.string_at(image.value, size.value) == 2 * PIECE
check(cuda.cuModuleLoadDataEx(ctypes.byref(module), image, 0, None, None))
check(cuda.cuLinkDestroy(link))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"one"))
check(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None))
check(cuda.cuCtxSynchronize())
print("linked and launched")
