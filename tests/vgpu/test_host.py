# SPDX-License-Identifier: Apache-2.0
"""What a virtual card owes its program besides the verdict: the same addresses twice, several cards, monitors, wheels
without NVIDIA's packages, and every usual way to start a program."""

import concurrent.futures
import functools
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import ENDS, ENVIRONMENTS, HERE, MAIN, TONNAGE, WHEELS, python_of, run_tonnage

FORKED = True  # ../fork_servers.py


def check(run):
    assert run.verdict == "fits" and run.status == 0, run.explain()


@pytest.mark.fresh
@pytest.mark.parametrize("wheel", WHEELS)
def test_two_runs_see_the_same_addresses(tonnage, wheel):
    runs = [tonnage(wheel, "programs/addresses.py", "--steps=all") for _ in range(2)]
    for run in runs:
        check(run)
    assert len(runs[0].stdout.splitlines()) > 200
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.fresh
def test_expandable_segments_see_the_same_addresses(tonnage):
    conf = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    runs = [tonnage(MAIN, "programs/addresses.py", "--steps=all", env=conf) for _ in range(2)]
    for run in runs:
        check(run)
    assert runs[0].stdout == runs[1].stdout


def test_a_forked_worker_owns_nothing(tonnage):
    check(tonnage(MAIN, "programs/fork_worker.py", "--steps=all"))


@pytest.mark.fresh
def test_peaks_do_not_depend_on_when_nccls_watchdog_looks(tonnage):
    """Alone, and twice at once. Without collectives.py the three differ by gigabytes."""
    def start(number):
        return tonnage(MAIN, "../../examples/ddp_one_rank.py", "--memory=24GiB")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [start(0), *pool.map(start, (1, 2))]
    for run in runs:
        check(run)
    assert runs[0].report["peak"] == runs[1].report["peak"] == runs[2].report["peak"]


@pytest.mark.parametrize("wheel", [MAIN, *ENDS])
def test_every_kind_of_nccl_group_is_waited_for(tonnage, wheel):
    """Some refuse to be asked what is pending: the guest goes on, and sees every step."""
    named, chosen = (tonnage(wheel, ["programs/ddp.py", *words]) for words in (["nccl"], []))
    for run in (named, chosen):
        check(run)
        assert run.report["steps"]["seen"] == 4, run.explain()
    assert named.report["peak"] == chosen.report["peak"]


def test_two_cards(tonnage):
    run = tonnage(MAIN, "programs/two_gpus.py", "--gpus=2", "--gpu=rtx4090", "--steps=all")
    check(run)
    assert "RTX 4090" in run.stdout


def test_the_real_cards_numbers_do_not_count(tonnage):
    program = "import torch; print(torch.cuda.device_count(), torch.cuda.get_device_name(0), torch.ones(1, device='cuda').shape)"
    run = tonnage(MAIN, ["-c", program], "--gpu=rtx4090", env={"CUDA_VISIBLE_DEVICES": "3"})
    check(run)
    assert "1 NVIDIA GeForce RTX 4090" in run.stdout


def test_nvml_agrees_with_pytorch(tonnage):
    check(tonnage(MAIN, "programs/query_nvml.py", "--steps=all"))


def test_nvml_shows_what_others_hold(tonnage):
    run = tonnage(MAIN, "programs/query_nvml.py", "--steps=all", "--other=3GiB")
    check(run)
    assert run.device_bytes >= 3 << 30, run.explain()


def test_nvitop(tonnage):
    check(tonnage(MAIN, "programs/query_nvitop.py", "--steps=all"))


def test_direct_round_trips_are_exact(tonnage):
    run = tonnage(MAIN, "programs/round_trip.py", "--steps=all")
    check(run)
    assert "round trips are exact" in run.stdout


def test_without_nvidia_packages_the_peak_is_the_same(tonnage):
    installed = list((ENVIRONMENTS / "torch-2.11.0-slim/lib").glob("python*/site-packages/nvidia*"))
    assert installed == []
    full = tonnage(MAIN, "programs/small_gpt.py", "--steps=all")
    slim = tonnage("torch-2.11.0-slim", "programs/small_gpt.py", "--steps=all")
    check(full)
    check(slim)
    assert slim.report["peak"] == full.report["peak"]


PROGRAM = """\
import torch
model = torch.nn.Linear(1000, 1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    model(torch.rand(10, 1000, device="cuda")).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("way", ["module", "shell", "pytest", "torchrun", "inline"])
def test_ways_to_start_a_program(tmp_path, way):
    python = python_of(MAIN)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text(PROGRAM)
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "run.sh").write_text(f'set -e\necho starting\n"{python}" train.py "$@"\n')
    body = "".join(f"    {line}\n" for line in PROGRAM.splitlines())
    (tmp_path / "test_train.py").write_text(f"def test_train():\n{body}")
    program = {
        "module": [python, "-m", "package"],
        "shell": ["bash", "run.sh"],
        "pytest": [python, "-m", "pytest", "-q", "test_train.py"],
        "torchrun": [python, "-m", "torch.distributed.run", "--nproc-per-node", "1", "train.py"],
        "inline": [python, "-c", PROGRAM],
    }[way]
    run = run_tonnage(["--steps=all"], program, tmp_path)
    check(run)
    assert run.report["peak"]["allocated_bytes"] > 4_000_000, run.explain()


TWO = """\
import os, subprocess, sys
both = [[sys.executable, program] for program in sys.argv[1:]]
environment = {**os.environ, "TONNAGE_TEST_CHILD": "1"}  # either may be forked
with subprocess.Popen([*both[0], "stays"], stdout=subprocess.PIPE, text=True, env=environment) as first:
    assert first.stdout.readline() == "held\\n"
    status = subprocess.Popen(both[1], env=environment).wait()
    first.kill()
sys.exit(status)
"""


def test_the_card_is_shared_by_the_processes_of_a_run(tmp_path):
    """Two of PyTorch, which fit together; and one that finds no room beside one of the driver's API."""
    python = python_of(MAIN)
    (tmp_path / "two.py").write_text(TWO)
    by_torch, by_driver = (HERE / f"programs/hold_by_{way}.py" for way in ("torch", "driver"))
    start = functools.partial(run_tonnage, cwd=tmp_path, forked=True, launches=True)
    large = start(["--memory=8GiB", "--steps=all"], [python, "two.py", by_torch, by_torch])
    assert large.verdict == "fits", large.explain()
    assert large.device_bytes > 2 << 30, large.explain()
    small = start(["--memory=2GiB", "--steps=all"], [python, "two.py", by_driver, by_torch])
    assert small.verdict == "out_of_memory", small.explain()


def processes_of(folder):
    """Pids whose environment names this folder, zombies left out."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and os.fsencode(str(folder)) in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("victim", ["program", "supervisor"])
def test_kill_9_in_mid_step_leaves_nothing(tmp_path, victim):
    marker = tmp_path / "marker"  # named in the environment only
    program = tmp_path / "train.py"
    program.write_text(
        "import os, torch\n"
        "x = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\n"
        "print(os.getpid(), flush=True)\n"
        "while True:\n    y = torch.ones(1000, device='cuda') * 2\n"
    )
    environment = {**os.environ, "TONNAGE_TEST_MARKER": str(marker), "TMPDIR": str(tmp_path)}
    command = [str(TONNAGE), "run", "--steps=all", "--", python_of(MAIN), str(program)]
    shared_before = set(os.listdir("/dev/shm"))
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    pid = int(run.stdout.readline())
    os.kill(pid if victim == "program" else run.pid, signal.SIGKILL)
    status = run.wait(timeout=30)
    assert status == (128 + 9 if victim == "program" else -9)
    deadline = time.monotonic() + 10
    while processes_of(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(marker) == []
    theirs = re.compile(rf"tonnage-|torch_(?!{pid}_)\d+_")  # of runs of other tests, and of processes of torch that are not this one
    ours = {name for name in os.listdir("/dev/shm") if not theirs.match(name)}
    assert ours <= shared_before
    # The next start removes an orphaned folder; the scratch of a run that ended is kept where it was announced.
    subprocess.run([str(TONNAGE), "run", "--quiet", "--", "true"], env=environment, capture_output=True, timeout=60)
    assert [p for p in tmp_path.glob("tonnage-*") if (p / "ledger").exists()] == []


def test_contexts_of_the_driver(tonnage):
    run = tonnage(MAIN, "programs/driver_contexts.py", "--gpu=rtx3060")
    assert "contexts as documented" in run.stdout and not run.report["coverage"]["refused_calls"], run.explain()


def test_linker_of_the_driver(tonnage):
    run = tonnage(MAIN, "programs/driver_linker.py", "--gpu=rtx3060")
    assert "linked and launched" in run.stdout and not run.report["coverage"]["refused_calls"], run.explain()


@pytest.mark.parametrize(
    "gpu, watts, fan, cores", [("rtx3060", "170000", "0", "3584"), ("a100-80", "400000", "Not Supported", "6912")]
)
def test_monitors_get_their_figures(tonnage, gpu, watts, fan, cores):
    """Boards with a fan of their own answer for it, those that a server cools do not."""
    run = tonnage(MAIN, "programs/monitor_figures.py", f"--gpu={gpu}")
    told = dict(line.split(maxsplit=1) for line in run.stdout.splitlines())
    assert told == {
        "EnforcedPowerLimit": watts,
        "TotalEnergyConsumption": "72000000",
        "FanSpeed": fan,
        "CurrPcieLinkGeneration": "4",
        "CurrPcieLinkWidth": "16",
        "NumGpuCores": cores,
    }, run.explain()
    assert not run.report["coverage"]["refused_calls"], run.explain()


def test_managed_memory_is_told_and_takes_no_room(tonnage):
    run = tonnage(MAIN, "programs/managed.py", "--gpu=rtx3060")
    told = [finding for finding in run.report["findings"] if finding["id"] == "managed_memory"]
    assert "managed" in run.stdout and [finding["bytes"] for finding in told] == [96 << 20], run.explain()
