# SPDX-License-Identifier: Apache-2.0
"""The GPU code of the supported wheels is read (src/code): every fat binary, packed by LZ4 and by zstd, and the sizes of
parameters, which are those that PyTorch's source gives them."""

import mmap
import pathlib
import re
import struct
import subprocess

import pytest
from conftest import ENDS, HERE, MAIN, ROOT, python_of

FORKED = True  # ../fork_servers.py

# name -> sizes. TensorDims: 25 numbers of 64 bits (Nonzero.cu); TensorListMetadata: up to 4 KiB, or 32 KiB since 2.15
# (MultiTensorApply.cuh); an empty functor has one byte.
KERNELS = {
    rb"_ZN2at6native\w{1,60}_10_Nonzero_cu_\w{8}13write_indicesIlEEvPlNS1_10TensorDimsIT_EEiS5_S3_l\b": [8, 200, 4, 8, 8, 8],
    rb"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EE(?:Lb0E)?EEviT0_T1_\b": [4, 4, 8],
}
LISTS = (rb"_ZN2at6native\w{1,60}_17_ForeachUnaryOp_cu_\w{8}25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEE"
         rb"NS1_11ZeroFunctorIfLi1ELi1ELi0EEEJEEEvT_T0_DpT1_\b")  # fmt: skip


@pytest.fixture(scope="module")
def read_code(tmp_path_factory):
    program = tmp_path_factory.mktemp("code") / "read_code"
    sources = [HERE / "programs/read_code.c", *(ROOT / "src/code").glob("*.c"), *(ROOT / "src/base").glob("*.c")]
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", f"-I{ROOT}/include", f"-I{ROOT}/src", *sources, "-o", program, "-lzstd",
                    "-llz4", "-ljansson"], check=True)  # fmt: skip
    return program


def fat_section(elf):
    """Where .nv_fatbin lies in a shared library, and its bytes."""
    table, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for name, _, _, _, offset, length in sections:
        if elf[sections[names][4] + name : sections[names][4] + name + 11] == b".nv_fatbin\0":
            return offset, length
    raise AssertionError("a library without GPU code")


@pytest.mark.parametrize("wheel", [MAIN, *ENDS])
def test_every_fat_binary_of_a_wheel(read_code, wheel):
    environment = pathlib.Path(python_of(wheel)).parent.parent
    library = next(environment.glob("lib/python3*/site-packages/torch/lib/libtorch_cuda.so"))
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
        offset, length = fat_section(elf)
        names = {pattern: re.search(pattern, elf).group().decode() for pattern in [*KERNELS, LISTS]}
    command = [read_code, library, str(offset), str(length), *names.values()]
    *kernels, last = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found, opened = map(int, last.split())
    assert found == opened > 300
    sizes = {row.split()[0]: [int(size) for size in row.split()[1:]] for row in kernels}
    for pattern, right in KERNELS.items():
        assert sizes[names[pattern]] == right
    metadata, functor = sizes[names[LISTS]]
    assert functor == 1 and (24 << 10 < metadata < 32 << 10 if wheel == "torch-2.15.0" else 3 << 10 < metadata < 4 << 10)


GONE = """\
import ctypes, torch
torch.zeros(1, device="cuda")
(library,) = {line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line}
gone = ctypes.CDLL(library).__cudaUnregisterFatBinary
gone.argtypes = [ctypes.c_void_p]
gone(None)
print("resumed")
"""


def test_unloading_no_fat_binary_at_all(tonnage):
    """A library that failed before it registered its code takes none away."""
    run = tonnage(MAIN, ["-c", GONE])
    assert "resumed" in run.stdout, run.explain()
