# SPDX-License-Identifier: Apache-2.0
"""What a step of a real transformer is counted to do, under the real changes, against what is known of it; and the ratio that
`tonnage fix` tells of it."""

import json
import os
import subprocess

import fork_servers
import pytest
from conftest import HERE, MAIN, TEMPORARY, TONNAGE, WHEELS, python_of

PROGRAM = HERE / "programs/step_time.py"
TOKENS, BLOCKS, WIDTH, LENGTH, WORDS = 8 * 512, 12, 768, 512, 8192
# operations of one forward pass, by hand: products and attention of the blocks (fp32 attention skips nothing), the head
IN_BLOCKS = BLOCKS * TOKENS * (2 * 12 * WIDTH * WIDTH + 4 * LENGTH * WIDTH)
HEAD = 2 * TOKENS * WIDTH * WORDS


class Step:
    """The third step, summed over bins."""

    def __init__(self, text):
        self.flops, self.bytes, self.count = {}, {}, {}
        for line in text.splitlines():
            fields = line.split("\t")
            if len(fields) == 6 and fields[0] == "3":
                for sums, value in ((self.count, fields[3]), (self.flops, fields[4]), (self.bytes, fields[5])):
                    sums[fields[1]] = sums.get(fields[1], 0) + float(value)

    @property
    def all_flops(self):
        return sum(self.flops.values())


@pytest.fixture(params=WHEELS, scope="module")
def step(request, tmp_path_factory):
    """step(change, gpu) -> what a step did under the change"""
    known, folder, python = {}, tmp_path_factory.mktemp("step_time"), python_of(request.param)

    def run(change="", gpu="rtx3060"):
        if (change, gpu) not in known:
            words = [str(TONNAGE), "run", "--quiet", "--gpu", gpu, "--steps", "all", "--", python, str(PROGRAM)]
            variables = {**os.environ, "TMPDIR": TEMPORARY.name, "TONNAGE_CHANGES": change}
            done = None
            if request.param == MAIN and fork_servers.can_fork(words[-2:], {}):
                done = fork_servers.run_forked(TONNAGE, python, words, words, folder, variables, timeout=300)
            if done is None:
                done = subprocess.run(words, cwd=folder, env=variables, timeout=300, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-6000:]
            known[change, gpu] = Step(done.stdout)
        return known[change, gpu]

    return run


def near(value, wanted, share):
    return abs(value - wanted) <= share * wanted


def test_a_step_is_three_forwards_of_arithmetic(step):
    assert near(step().all_flops, 3 * (IN_BLOCKS + HEAD), 0.08), step().flops


def test_checkpointing_all_blocks_does_their_forward_again(step):
    """But for each block's last product: torch's checkpoint stops early, once it has what backward needs."""
    again = step("checkpoint=1").all_flops - step().all_flops
    last_products = BLOCKS * TOKENS * 8 * WIDTH * WIDTH
    assert near(again, IN_BLOCKS - last_products, 0.03), (again, IN_BLOCKS, last_products)


def test_autocast_moves_the_products_to_tensor_cores(step):
    half = step("autocast=bf16")
    assert half.flops["half"] >= 0.95 * half.all_flops, half.flops
    assert near(half.all_flops, step().all_flops, 0.08), half.flops


def test_offloading_activations_is_mostly_the_link(step):
    """What goes to the host comes back; at the full speed of PCIe 4.0 x16 that takes longer than the arithmetic at that of an
    RTX 3060."""
    away, plain = step("offload_activations"), step()
    out = away.bytes["to_host"]
    assert out > 1e9 and near(away.bytes["to_device"], out + plain.bytes["to_device"], 0.02), away.bytes
    assert 2 * out / 31.5e9 > 0.3 * plain.all_flops / 12.7e12, away.bytes


def test_the_optimizer_on_the_host_moves_gradients_and_parameters(step):
    parameters = 4 * (BLOCKS * 12 * WIDTH * WIDTH + 2 * WORDS * WIDTH)
    away = step("offload_optimizer")
    assert near(away.bytes["to_host"], parameters, 0.01) and near(away.bytes["host"], 7 * parameters, 0.01), away.bytes


def test_guesses_are_few(step):
    """Of a transformer's traffic most is known by name."""
    known = sum(value for name, value in step().bytes.items() if name in ("fp32", "half", "tf32"))
    assert step().bytes.get("guessed", 0) <= 0.3 * known, step().bytes


@pytest.mark.long
def test_fix_tells_the_time_of_what_fits(tmp_path):
    out = tmp_path / "out.json"
    words = [str(TONNAGE), "fix", "--gpu", "rtx3060", "--memory", "3600MiB", "--steps", "4", "--seconds", "1", "--json",
             str(out), "--", python_of("torch-2.11.0"), str(PROGRAM)]  # fmt: skip
    variables = {**os.environ, "TMPDIR": TEMPORARY.name}
    done = subprocess.run(words, cwd=tmp_path, env=variables, timeout=600, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    fitting = [change for change in json.loads(out.read_text())["changes"] if change["fits"]]
    assert fitting and all(change["step_time_ratio"] is not None for change in fitting), done.stderr[-6000:]
    for change in fitting:
        low, high = change["step_time_range"]
        assert 0.2 < low <= change["step_time_ratio"] <= high, change
    screen = " ".join(done.stderr.split())
    assert "x the time (" in screen and "time unknown" not in screen, done.stderr[-6000:]
