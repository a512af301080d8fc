# SPDX-License-Identifier: Apache-2.0
"""nvidia-smi inside a run: the virtual cards and the ledger's figures, in the forms that programs parse."""

import re

import pytest

GIB = 1 << 30
HOLD = """
import ctypes, os, subprocess, sys
runtime = ctypes.CDLL("libcudart.so.13")
assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(3 << 30)) == 0
print(os.getpid(), flush=True)
sys.exit(subprocess.run(["nvidia-smi", *sys.argv[1:]]).returncode)
"""


@pytest.fixture
def smi(tonnage, tmp_path):
    """smi(*words): (pid that holds 3 GiB on card 0, what nvidia-smi prints, its status)."""
    program = tmp_path / "hold.py"
    program.write_text(HOLD)

    def call(*words):
        done = tonnage("run", "--gpus", "2", "--gpu", "rtx3090", "--quiet", "--", "python3", program, *words)
        pid, _, rest = done.stdout.partition("\n")
        return pid, rest, done.returncode

    return call


def test_memory_is_the_ledgers(smi):
    pid, out, _ = smi("--query-gpu=index,memory.total,memory.used,memory.free", "--format=csv,noheader,nounits")
    (first, second) = [[int(word) for word in line.split(", ")] for line in out.splitlines()]
    assert first[0] == 0 and second[0] == 1
    assert first[1] == second[1] == 24135
    assert 3072 < first[2] < 4096 and abs(first[1] - first[2] - first[3]) <= 1
    assert second[2] == 0


def test_processes_are_listed(smi):
    pid, out, _ = smi("--query-compute-apps=pid,used_memory", "--format=csv")
    header, row = out.splitlines()
    assert header == "pid, used_memory [MiB]"
    assert re.fullmatch(rf"{pid}, (\d+) MiB", row) and 3072 < int(row.split()[1]) < 4096


def test_header_and_units_can_be_left_out(smi):
    _, out, _ = smi("--query-gpu=name,memory.total", "--format=csv", "-i", "1")
    assert out.splitlines() == ["name, memory.total [MiB]", "NVIDIA GeForce RTX 3090, 24135 MiB"]


def test_clocks_are_the_cards(smi):
    _, out, _ = smi("--query-gpu=clocks.max.sm,clocks.max.mem,clocks.sm,temperature.gpu", "--format=csv,noheader,nounits", "-i", "0")
    assert out.splitlines() == ["1695, 9751, 1695, 35"]


def test_cards_are_listed(smi):
    _, out, _ = smi("-L")
    assert re.fullmatch(r"(GPU [01]: NVIDIA GeForce RTX 3090 \(UUID: GPU-[0-9a-f-]{36}\)\n){2}", out)


def test_table_is_as_wide_as_its_rules(smi):
    pid, out, _ = smi()
    lines = [line for line in out.splitlines() if line]
    assert {len(line) for line in lines} == {91}
    assert any(re.search(rf"\| +0 +{pid} +C ", line) for line in lines)


@pytest.mark.parametrize("words, status", [
    (("--query-gpu=nonsense", "--format=csv"), 2), (("--query-gpu=name",), 2), (("-q",), 3), (("--help",), 0)])
def test_exit_statuses_are_the_documented_ones(smi, words, status):
    assert smi(*words)[2] == status
