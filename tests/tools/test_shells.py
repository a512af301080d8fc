# SPDX-License-Identifier: Apache-2.0
"""The shells that need no CUDA header, compiled against a fake core and called as a program would call them."""
import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-fPIC", "-shared", "-fvisibility=hidden", "-DTN_CUDA_MAJOR=13",
         "-I%s" % (ROOT / "include"), "-I%s" % (ROOT / "src")]
SUCCESS = 0


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shells")

    def compile_one(name, sources):
        path = folder / name
        subprocess.run(["cc", *FLAGS, "-Wl,-soname," + name, "-o", str(path), *map(str, sources)], check=True)
        return path

    core = compile_one("libtonnage-vgpu.so", [ROOT / "tests/tools/fake_core.c", ROOT / "src/vgpu/core/attributes.c",
                                              "-fvisibility=default"])

    def shell(folder_name, soname):
        source = ROOT / "src/vgpu" / folder_name
        subprocess.run(["cmake", "-D", "FOLDER=%s" % source, "-D", "OUTPUT=%s/vgpu/%s/table.def" % (folder, folder_name),
                        "-P", ROOT / "cmake/shell_table.cmake"], check=True)
        library = compile_one(soname, ["-I%s" % folder, *sorted(source.glob("*.c")), ROOT / "src/base/array.c", ROOT / "src/base/ranges.c", core])
        return ctypes.CDLL(str(library))

    build_of = {"core": ctypes.CDLL(str(core), mode=ctypes.RTLD_GLOBAL), "folder": folder, "shell": shell}
    build_of["core"].fake_refused.restype = ctypes.c_char_p
    return build_of


# ---- NCCL ----

class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


FLOAT, SUM = 7, 0
INVALID_ARGUMENT, INVALID_USAGE = 4, 5


@pytest.fixture(scope="module")
def nccl(build):
    library = build["shell"]("nccl", "libnccl.so.2")
    library.ncclGetLastError.restype = ctypes.c_char_p
    library.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    return library


@pytest.fixture
def communicator(nccl):
    identity, comm = UniqueId(), ctypes.c_void_p()
    assert nccl.ncclGetUniqueId(ctypes.byref(identity)) == SUCCESS
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, identity, 0) == SUCCESS
    yield comm
    assert nccl.ncclCommDestroy(comm) == SUCCESS


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


def test_nccl_unique_ids_differ(nccl):
    first, second = UniqueId(), UniqueId()
    nccl.ncclGetUniqueId(ctypes.byref(first))
    nccl.ncclGetUniqueId(ctypes.byref(second))
    assert bytes(first) != bytes(second)


@pytest.mark.parametrize("call", ["ncclAllGather", "ncclAlltoAll", "pncclAllGather"])
def test_nccl_moves_the_own_part(nccl, communicator, call):
    source, target = floats(1, 2, 3), floats(0, 0, 0)
    assert getattr(nccl, call)(source, target, ctypes.c_size_t(3), FLOAT, communicator, None) == SUCCESS
    assert list(target) == [1, 2, 3]


def test_nccl_a_made_operator_is_a_kernel(nccl, build, communicator):
    buffer, operator = floats(1, 2), ctypes.c_int()
    before = build["core"].fake_works()
    assert nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(2), FLOAT, SUM, communicator, None) == SUCCESS
    assert build["core"].fake_works() == before
    assert nccl.ncclRedOpCreatePreMulSum(ctypes.byref(operator), floats(2), FLOAT, 1, communicator) == SUCCESS
    assert nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(2), FLOAT, operator, communicator, None) == SUCCESS
    assert build["core"].fake_works() == before + 1
    assert nccl.ncclRedOpDestroy(operator, communicator) == SUCCESS


def test_nccl_sends_meet_receives_in_order(nccl, communicator):
    sources, targets = [floats(1), floats(2)], [floats(0), floats(0)]
    nccl.ncclGroupStart()
    nccl.ncclGroupStart()
    for target in targets:
        assert nccl.ncclRecv(target, ctypes.c_size_t(1), FLOAT, 0, communicator, None) == SUCCESS
    assert nccl.ncclGroupEnd() == SUCCESS
    for source in sources:
        assert nccl.ncclSend(source, ctypes.c_size_t(1), FLOAT, 0, communicator, None) == SUCCESS
    assert list(targets[0]) == [0]
    assert nccl.ncclGroupEnd() == SUCCESS
    assert [list(target) for target in targets] == [[1], [2]]


def test_nccl_groups_of_two_communicators_are_kept_apart(nccl, communicator):
    other = ctypes.c_void_p()
    assert nccl.ncclCommSplit(communicator, 0, 0, ctypes.byref(other), None) == SUCCESS
    first, second, one, two = floats(0), floats(0), floats(1), floats(2)
    nccl.ncclGroupStart()
    nccl.ncclSend(one, ctypes.c_size_t(1), FLOAT, 0, communicator, None)
    nccl.ncclSend(two, ctypes.c_size_t(1), FLOAT, 0, other, None)
    nccl.ncclRecv(second, ctypes.c_size_t(1), FLOAT, 0, other, None)
    nccl.ncclRecv(first, ctypes.c_size_t(1), FLOAT, 0, communicator, None)
    assert nccl.ncclGroupEnd() == SUCCESS
    assert (first[0], second[0]) == (1, 2)
    assert nccl.ncclCommDestroy(other) == SUCCESS


def test_nccl_says_what_is_wrong(nccl, build, communicator):
    buffer = floats(1)
    assert nccl.ncclSend(buffer, ctypes.c_size_t(1), FLOAT, 0, communicator, None) == INVALID_USAGE
    assert b"same group" in nccl.ncclGetLastError(None)
    assert nccl.ncclSend(buffer, ctypes.c_size_t(1), FLOAT, 1, communicator, None) == INVALID_ARGUMENT
    assert nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(1), 99, SUM, communicator, None) == INVALID_ARGUMENT
    huge = ctypes.c_size_t(2 ** 63)
    assert nccl.ncclAllReduce(buffer, buffer, huge, FLOAT, SUM, communicator, None) == INVALID_ARGUMENT
    assert nccl.ncclGroupEnd() == INVALID_USAGE


def test_nccl_several_ranks_cannot_meet_without_a_run(nccl):
    comm = ctypes.c_void_p()
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, UniqueId(), 1) == INVALID_USAGE
    assert not comm
    assert b"only meet in a run of tonnage" in nccl.ncclGetLastError(None)


# ---- NVML ----

@pytest.fixture(scope="module")
def nvml(build):
    return build["shell"]("nvml", "libnvidia-ml.so.1")


def test_nvml_wants_to_be_initialised(nvml):
    count = ctypes.c_uint()
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 1
    assert nvml.nvmlShutdown() == 1
    assert nvml.nvmlInit_v2() == SUCCESS
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == SUCCESS and count.value == 2
    assert nvml.nvmlShutdown() == SUCCESS


def test_nvml_as_pytorch_asks_at_out_of_memory(nvml):
    class Process(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]

    assert nvml.nvmlInit_v2() == SUCCESS
    device, count, processes = ctypes.c_void_p(), ctypes.c_uint(0), (Process * 2)()
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"00000000:02:00.0", ctypes.byref(device)) == SUCCESS
    assert nvml.nvmlDeviceGetComputeRunningProcesses(device, ctypes.byref(count), processes) == 7
    assert count.value == 1
    assert nvml.nvmlDeviceGetComputeRunningProcesses(device, ctypes.byref(count), processes) == SUCCESS
    assert (processes[0].pid, processes[0].used) == (os.getpid(), 2000)
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0:09:0", ctypes.byref(device)) == 6
    assert nvml.nvmlShutdown() == SUCCESS


def load_pynvml(library):
    """A fresh pynvml that talks to our library; it finds it among the loaded ones by its SONAME."""
    folder = os.environ.get("TONNAGE_PYNVML")
    spec = importlib.util.find_spec("pynvml") if not folder else importlib.util.spec_from_file_location(
        "pynvml", pathlib.Path(folder) / "pynvml.py")
    if spec is None:
        pytest.skip("nvidia-ml-py is not installed (or name its folder in TONNAGE_PYNVML)")
    module = sys.modules["pynvml"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nvml_through_pynvml(nvml):
    pynvml = load_pynvml(nvml)
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetName(device) == "NVIDIA GeForce RTX 3060"
    assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(device))) == 1
    bus_id = pynvml.nvmlDeviceGetPciInfo(device).busId
    assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)) == 1
    assert pynvml.nvmlDeviceGetMemoryInfo(device).used == 3000
    assert pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2).free == 9000
    assert pynvml.nvmlDeviceGetCudaComputeCapability(device) == (8, 6)
    for call in (pynvml.nvmlDeviceGetComputeRunningProcesses_v2, pynvml.nvmlDeviceGetComputeRunningProcesses_v3):
        assert [(process.pid, process.usedGpuMemory) for process in call(device)] == [(os.getpid(), 2000)]
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0)) == []
    for absent in (pynvml.nvmlDeviceGetEccMode, pynvml.nvmlDeviceGetSerial):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            absent(device)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(2)
    pynvml.nvmlShutdown()


# ---- CUPTI ----

def test_cupti_gives_no_records_and_refuses_counters(build):
    cupti = build["shell"]("cupti", "libcupti.so.13")
    handle, record, last = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    assert cupti.cuptiSubscribe(ctypes.byref(handle), None, None) == SUCCESS
    assert cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), None, None) == 39
    assert cupti.cuptiActivityEnable(3) == SUCCESS
    assert cupti.cuptiActivityGetNextRecord(None, ctypes.c_size_t(0), ctypes.byref(record)) == 12
    assert cupti.cuptiActivityPushExternalCorrelationId(1, ctypes.c_uint64(7)) == SUCCESS
    assert cupti.cuptiActivityPopExternalCorrelationId(1, ctypes.byref(last)) == SUCCESS and last.value == 7
    assert cupti.cuptiActivityPopExternalCorrelationId(1, None) == 18
    assert cupti.cuptiUnsubscribe(handle) == SUCCESS
    assert cupti.cuptiProfilerInitialize(None) == 27
    assert build["core"].fake_refused() == b"cuptiProfilerInitialize"
