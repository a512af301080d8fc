# SPDX-License-Identifier: Apache-2.0
"""Memory that grows with every step or batch. The rule by itself, then on the FAKE allocator of fake_cuda.py."""

import os
import pathlib
import sys

import pytest
from test_fast_forward import LOADERS
from test_steps import HEAD, TRAIN

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import growth  # noqa: E402

FORKED = True  # ../fork_servers.py

MIB = 1 << 20
PROGRAM = HEAD + TRAIN + LOADERS


def watched(values, unit="step"):
    watch = growth.Watch(unit)
    for number, value in enumerate(values, 1):
        watch.add(number, value, value + 5)
    return watch


@pytest.fixture(autouse=True)
def no_garbage(monkeypatch):
    monkeypatch.setattr(growth, "allocated_now", lambda: 1 << 60)


def test_steady():
    watch = watched([10 * MIB + n * MIB for n in range(80)])
    found = watch.document()
    assert watch.certain() and found["bytes"] == MIB and found["first"] == 1
    assert found["last"] == 1 + 64 + 4, "64 steps, and four more for a snapshot of whole steps"
    assert found["allocated"] == 78 * MIB and found["peak"] == found["allocated"] + 5


def test_each_third_step():
    found = watched([n // 3 * MIB for n in range(100)])
    assert found.certain() and found.document()["bytes"] == round(MIB / 3)


@pytest.mark.parametrize(
    "values",
    [
        [50 * MIB] * 100,
        [min(n, 50) * MIB for n in range(100)],
        [n % 20 * MIB for n in range(100)],
        [n * 512 for n in range(100)],
        [int(n ** .5 * MIB) for n in range(100)],
        [n * n * MIB for n in range(100)],
    ],
    ids=["flat", "cache that fills up", "freed each twenty", "trifle", "slower and slower", "faster and faster"],
)  # fmt: skip
def test_no_steady_growth(values):
    assert not watched(values).certain()


def test_an_evaluation_is_sure_earlier():
    watch = watched([n * MIB for n in range(30)], "evaluation batch")
    assert watch.certain() and watch.document()["last"] == 17


def test_slow_steps_need_fewer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(growth, "_clock", lambda: now.__setitem__(0, now[0] + 2) or now[0])
    assert watched([n * MIB for n in range(30)]).document()["last"] == 13 + 4


def document(done):
    assert done.status == 0 and done.document["hook_error"] is None, done.stderr
    return done.document["growth"]


def test_a_leak_in_training(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
for _ in range(3):
    for batch, in DataLoader(data, batch_size=2): fake_cuda.use(1 << 20); update()
""", TONNAGE_STEPS="auto")
    found = document(done)
    assert (found["unit"], found["bytes"], found["first"], found["last"]) == ("step", MIB, 1, 69)
    assert found["allocated"] == 69 * MIB + 1000 and found["peak"] == found["allocated"] + 2
    assert found["of"] == 3000 and found["at"]["line"] == PROGRAM.count("\n") + 3
    assert done.document["steps"]["seen"] == 71 and done.document["steps"]["stopped"] == "settled"


def test_a_list_that_lives_for_one_epoch(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
for _ in range(3):
    kept = 0
    for batch, in DataLoader(data, batch_size=2): fake_cuda.use(1 << 20); kept += 1 << 20; update()
    fake_cuda.free(kept)
""", TONNAGE_STEPS="auto")
    assert document(done)["of"] == 1000


def test_outputs_kept_in_evaluation(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
train()
kept = 0
with torch.no_grad():
    for batch, in DataLoader(data, batch_size=4): fake_cuda.use(1 << 20); kept += 1
fake_cuda.free(kept << 20)
train()
print(kept)
""", TONNAGE_STEPS="auto")
    found = document(done)
    assert (found["unit"], found["bytes"], found["of"]) == ("evaluation batch", MIB, 500)
    assert int(done.stdout) == found["last"] < 30


def test_a_cache_that_fills_up(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
n = 0
for batch, in DataLoader(data, batch_size=2):
    if n < 50: fake_cuda.use(1 << 20)
    update(); n += 1
""", TONNAGE_STEPS="auto")
    assert document(done) is None and 58 <= done.document["steps"]["seen"] <= 150


BUFFER = """
kept = 0
for _ in range(90):
    for n, (batch,) in zip(range(80), DataLoader(data, batch_size=2)):
        if kept < {}: fake_cuda.use(1 << 20); kept += 1
        update()
"""


def test_a_buffer_that_is_full_later(run_with, wheel):
    """As the replay buffer of CycleGAN: certain after 69 steps, it goes on growing, and stops."""
    done = run_with(wheel, PROGRAM + BUFFER.format(110), TONNAGE_STEPS="auto")
    assert document(done) is None and done.document["steps"]["seen"] > 110


def test_a_growth_that_goes_on_stays_one(run_with, wheel):
    done = run_with(wheel, PROGRAM + BUFFER.format(10 ** 6), TONNAGE_STEPS="auto")
    assert document(done)["bytes"] == MIB


def test_cyclic_garbage_is_no_growth(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
import gc
gc.disable(); gc.enable(); gc.set_threshold(100000, 50, 50)
class Held:
    def __init__(self):
        self.me = self; fake_cuda.use(1 << 20)
    def __del__(self):
        fake_cuda.free(1 << 20)
for batch, in DataLoader(data, batch_size=2): Held(); update()
""", TONNAGE_STEPS="auto")
    assert document(done) is None and done.document["steps"]["seen"] > 69


def test_cut_short_by_an_out_of_memory(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
for n in range(8): fake_cuda.use(1 << 20); update()
fake_cuda.run_out(1 << 20)
""", TONNAGE_STEPS="auto")
    assert done.document["out_of_memory_ended_process"]
    assert done.document["growth"]["bytes"] == MIB and done.document["growth"]["last"] == 8


def test_a_generation_is_no_growth(run_with, wheel):
    done = run_with(wheel, HEAD + """
def generate():
    for n in range(150): net(torch.ones(1, 4)); fake_cuda.use(1 << 20)
    fake_cuda.free(150 << 20)
for _ in range(2): generate()
for _ in range(150): fake_cuda.use(1 << 20); net(torch.ones(1, 4)); fake_cuda.use(_); fake_cuda.free(_)
""", TONNAGE_STEPS="auto", TONNAGE_SECONDS="10000")
    assert done.document["growth"] is None, "a cache of tokens, with and without generate()"
