# SPDX-License-Identifier: Apache-2.0
"""A kernel of numba.cuda. Its compiler comes from NVIDIA's wheel, laid out as in a toolkit."""

import os
import pathlib
import tempfile

import numpy
import nvidia

wheel = pathlib.Path(next(iter(nvidia.__path__))) / "cu13"
toolkit = pathlib.Path(tempfile.mkdtemp())
(toolkit / "nvvm/lib64").mkdir(parents=True)
(toolkit / "nvvm/lib64/libnvvm.so.4").symlink_to(wheel / "lib/libnvvm.so.4")
(toolkit / "nvvm/libdevice").symlink_to(wheel / "nvvm/libdevice")
(toolkit / "lib64").symlink_to(wheel / "lib")
os.environ["CUDA_HOME"] = str(toolkit)

from numba import cuda  # noqa: E402

print("free", cuda.current_context().get_memory_info().free)


@cuda.jit
def add_one(source, target):
    at = cuda.grid(1)
    if at < source.size:
        target[at] = source[at] + 1


source = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
target = cuda.device_array_like(source)
add_one[4096, 256](source, target)
cuda.synchronize()
print("values", len(target.copy_to_host()))
