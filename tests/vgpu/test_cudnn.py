# SPDX-License-Identifier: Apache-2.0
"""The virtual cuDNN says what the real one says: convolution by convolution, its workspaces equal those of a C program
(cudnn/oracle.c) that shares no source with it and asks the same libcudnn for the same card."""

import collections
import csv
import fcntl
import json
import os
import pathlib
import subprocess

import pytest
from conftest import ENVIRONMENTS, HERE, ROOT, TONNAGE

FORKED = True  # ../fork_servers.py
HEADERS = ROOT / "build/headers/cuda13/nvidia/cu13/include"
NETS = {"resnet50": 8, "vgg16": 4, "convnext_tiny": 4, "mobilenet_v2": 8, "unet": 8}
CARDS = ["rtx3060", "a100-80", "h100", "h200"]
MODES = ["fp32", "amp", "channels_last"]
QUICK = {("resnet50", "fp32", "rtx3060"), ("vgg16", "amp", "h100"), ("convnext_tiny", "channels_last", "a100-80"),
         ("mobilenet_v2", "amp", "h200"), ("unet", "fp32", "rtx3060"), ("unet", "channels_last", "a100-80")}  # fmt: skip
TABLE = ROOT / "bench/results/cudnn_workspaces.csv"
FIELDS = ["environment", "cudnn", "net", "mode", "gpu", "convolutions", "workspaces", "equal"]


def cases():
    for environment in ["torch-2.11.0", "torch-2.15.0"]:
        for net in NETS:
            for mode in MODES:
                for card in CARDS:
                    quick = (net, mode, card) in (QUICK if environment == "torch-2.11.0" else [("resnet50", "fp32", "h200")])
                    yield pytest.param(environment, net, mode, card, marks=[] if quick else [pytest.mark.long])


@pytest.fixture
def tell(request):
    """tell(FIELDS): a row of the table of bench/, by `make long`; the rows of other cases stay. Runs side by side wait
    for each other."""

    def write(*row):
        if not request.config.getoption("--long"):
            return
        with open(TABLE, "a+", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            rows = {tuple(line[name] for name in FIELDS[:5]): line for line in csv.DictReader(file)}
            rows[tuple(map(str, row[:5]))] = dict(zip(FIELDS, row))
            file.truncate(0)
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(line for _, line in sorted(rows.items()))

    return write


def site_packages(environment):
    return next((ENVIRONMENTS / environment).glob("lib/python3*/site-packages"))


def libcudnn(environment):
    return site_packages(environment) / "nvidia/cudnn/lib/libcudnn.so.9"


@pytest.fixture(scope="session")
def oracle(tmp_path_factory):
    """oracle(environment, card, lines): a list for each call, from the real library of the environment: the workspace of its
    plan, with "all" of all of its plans."""
    folder = tmp_path_factory.mktemp("oracle")
    headers = site_packages("torch-2.11.0") / "nvidia/cudnn/include"
    if not headers.exists():
        pytest.skip("the headers of cuDNN are missing: tools/envs torch-2.11.0")
    subprocess.run(["cc", "-O1", "-o", folder / "oracle", HERE / "cudnn/oracle.c", f"-I{headers}", f"-I{HEADERS}", "-ldl"],
                   check=True)  # fmt: skip

    # Engines that are compiled at run time want a compiler and a driver: the wheel's, and the virtual one, whose own
    # library is looked for from the link's folder.
    installed = TONNAGE.resolve().parent.parent / "lib/tonnage"
    for library in ("vgpu/libcuda.so.1", "libtonnage-vgpu.so"):
        (folder / pathlib.Path(library).name).symlink_to(installed / library)

    def ask(environment, card, lines, *options):
        compilers = site_packages(environment).glob("nvidia/*/lib/libnvrtc.so.*")
        path = ":".join(map(str, [folder, *{compiler.parent for compiler in compilers}]))
        (folder / f"{card}.json").write_text(properties(card))
        done = subprocess.run([folder / "oracle", libcudnn(environment), folder / f"{card}.json", *options], check=True, text=True,
                              input="".join(f"{line}\n" for line in lines), capture_output=True,
                              env={**os.environ, "LD_LIBRARY_PATH": path})  # fmt: skip
        return [[int(word) for word in line.split() if word != "none"] for line in done.stdout.splitlines()]

    return ask


def properties(card):
    """A card as cuDNN's device property descriptor takes it, from the catalogue that a person sees."""
    listed = json.loads(subprocess.run([TONNAGE, "gpus", "--json"], capture_output=True, check=True).stdout)["gpus"]
    row = next(row for row in listed if card in row["aliases"])
    figure = {name: field["value"] for name, field in row.items() if isinstance(field, dict)}
    major, minor = map(int, str(figure["compute_capability"]).split("."))
    return json.dumps({
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "cudaDeviceId": 0,
        "deviceVer": 100 * major + 10 * minor, "regsPerBlock": 65536, "multiProcessorCount": figure["sm_count"],
        "smCountOrigin": 0, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": figure["shared_memory_optin_bytes"], "oversizedSharedMemoryPerBlock": 0,
        "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": figure["max_blocks_per_sm"],
        "maxThreadsPerBlock": 1024, "maxThreadsPerSM": figure["max_threads_per_sm"], "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "smClockRateKHz": figure["sm_clock_khz"], "memClockRateKHz": figure["memory_clock_khz"],
        "l2CacheSize": figure["l2_bytes"], "totalGlobalMem": figure["total_bytes"], "driverVer": 13000,
        "deviceName": row["name"],
    })  # fmt: skip


def split(run):
    assert run.status == 0, run.explain()
    lines = [line.partition(" ") for line in run.stdout.splitlines()]
    return [rest for kind, _, rest in lines if kind == "call"], [int(rest) for kind, _, rest in lines if kind == "workspace"]


def flat(lists):
    return [bytes for workspaces in lists for bytes in workspaces if bytes > 0]


def named_besides(call, card):
    """The workspace of the engine that Hopper is named besides, as src/vgpu/cudnn/unlisted.h says, and whether it comes first;
    None where there is none. Said here a second time, from the same table (bench/results/cudnn_engines.csv)."""
    numbers = [int(word) for word in call.split()]
    (direction, kind, _, tf32), rest = numbers[:4], numbers[4:]
    (n, c, h, w), strides, (k, inputs, rows, columns), moves = rest[:4], rest[4:8], rest[8:12], rest[24:]
    same_size = c == inputs and rows == columns and moves == [rows // 2] * 2 + [1] * 4
    plain = all(size == 1 or stride == wanted for size, stride, wanted in zip((n, c, h, w), strides, (c * h * w, h * w, w, 1)))
    if card not in ("h100", "h200") or not same_size or not plain:
        return None
    if rows == 1 and h * w >= 64 and k > 1:
        return (4 * min(n, 8) * k * c if direction == 2 else 0), kind != 0 or bool(tf32)
    if rows == 3 and direction == 2 and kind == 0 and c >= 32 and k >= 32:
        return 144 * (k * c + (k + c) * n * -(-h // 4) * -(-w // 4)), not tf32
    return None


def distinct(calls):
    return list(dict.fromkeys(calls))


def source_of(run):
    return run.report["sources"].get("at_peak.by_category.workspaces")


def version_of(run):
    """The cuDNN that has answered, which is the real one."""
    words = source_of(run).split()
    assert words[0] == "cuDNN" and words[2:] == ["heuristics"], "the model has answered, too"
    return words[1]


@pytest.mark.parametrize(("environment", "net", "mode", "card"), list(cases()))
def test_workspaces_equal_the_real_ones(tonnage, oracle, tmp_path, tell, environment, net, mode, card):
    run = tonnage(environment, ["cudnn/calls.py", net, mode, NETS[net]], f"--gpu={card}",
                  env={"XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    calls, workspaces = split(run)
    assert len(calls) > 20
    answers = dict(zip(distinct(calls), oracle(environment, card, distinct(calls))))
    for call in answers:
        besides = named_besides(call, card)
        if besides is not None and besides[1]:
            answers[call] = [besides[0]]
    real = flat(answers[call] for call in calls)
    tell(environment, version_of(run), net, mode, card, len(calls), len(workspaces), workspaces == real)
    assert workspaces == real


def test_answers_on_disk_are_the_same(tonnage, tmp_path):
    def run():
        return tonnage("torch-2.11.0", ["cudnn/calls.py", "convnext_tiny", "amp", 2], "--gpu=h100", "--no-detail",
                       env={"XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip

    asked, read = run(), run()
    assert split(asked)[1]
    assert (split(read), read.report["peak"]) == (split(asked), asked.report["peak"])


@pytest.mark.long
@pytest.mark.parametrize(("environment", "card"), [*(("torch-2.11.0", card) for card in CARDS), ("torch-2.15.0", "h200")])
@pytest.mark.parametrize("net", NETS)
def test_benchmark_mode_tries_every_plan(tonnage, oracle, tmp_path, tell, environment, net, card):
    """Each plan of each distinct convolution gets its workspace, as large as the real library says, twice (PyTorch warms up
    once and takes the time once), and each call hands over at most one more, that of the plan it takes."""
    run = tonnage(environment, ["cudnn/calls.py", net, "benchmark", 2], f"--gpu={card}", "--no-detail",
                  env={"XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    calls, workspaces = split(run)
    plans = flat(oracle(environment, card, distinct(calls), "all"))
    plans += [workspace for workspace, _ in filter(None, (named_besides(call, card) for call in distinct(calls))) if workspace > 0]
    assert len(calls) > 20 and plans, run.explain()
    tried, handed = collections.Counter(2 * plans), collections.Counter(workspaces)
    equal = tried <= handed and set(handed) == set(tried) and (handed - tried).total() <= len(calls)
    tell(environment, version_of(run), net, "benchmark", card, len(calls), len(workspaces), equal)
    assert equal, run.explain()


def test_without_the_library_the_model_speaks(tonnage, tmp_path):
    """A path that is none, a library that is not cuDNN: a verdict all the same, and the report says whose figures these
    are."""
    nowhere = tonnage("torch-2.11.0", ["cudnn/calls.py", "unet", "fp32", 2], "--gpu=rtx3060",
                      env={"TONNAGE_CUDNN": "/nowhere/libcudnn.so.9", "XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    assert nowhere.verdict == "fits" and set(split(nowhere)[1]) == {8 << 20}
    assert "library workspaces are estimated by a model" in nowhere.stderr
    assert source_of(nowhere) == "model: there is no libcudnn.so.9 beside PyTorch"
    other = pathlib.Path(libcudnn("torch-2.11.0")).parent / "../../../numpy/__init__.py"
    wrong = tonnage("torch-2.11.0", ["cudnn/calls.py", "unet", "fp32", 2], "--gpu=rtx3060",
                    env={"TONNAGE_CUDNN": str(other), "XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    assert wrong.verdict == "fits" and set(split(wrong)[1]) == {8 << 20}
    assert source_of(wrong) == "model: that library is no cuDNN from 9.8 on that can be loaded"


def test_another_cudnn_is_named(tonnage, oracle, tmp_path):
    """TONNAGE_CUDNN asks that library, and the report names the one that has answered."""
    environment = {"TONNAGE_CUDNN": str(libcudnn("torch-2.15.0")), "XDG_CACHE_HOME": str(tmp_path)}
    run = tonnage("torch-2.11.0", ["cudnn/calls.py", "unet", "fp32", 2], "--gpu=rtx3060", env=environment)
    calls, workspaces = split(run)
    assert workspaces == flat(oracle("torch-2.15.0", "rtx3060", calls))
    assert source_of(run) == "cuDNN 9.26.0 heuristics"


CONVOLUTION = "import torch; torch.nn.Conv2d(3, 64, 3).cuda()(torch.ones(8, 3, 224, 224, device='cuda')).sum().backward()"


def test_an_older_cudnn_is_said_to_be_one(tonnage, tmp_path):
    run = tonnage("torch-2.6.0", ["-c", CONVOLUTION], "--gpu=a100-80", env={"XDG_CACHE_HOME": str(tmp_path)})
    assert run.verdict == "fits", run.explain()
    assert source_of(run) == "model: this cuDNN is older than 9.8"
