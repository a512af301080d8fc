# SPDX-License-Identifier: Apache-2.0
"""When inputs that change, or trifles that are kept, let a run settle. By the rule, and on the FAKE allocator."""

import os
import pathlib
import random
import sys

import pytest
from test_fast_forward import LOADERS
from test_steps import HEAD, TRAIN, stop_after

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import shapes  # noqa: E402
from _tonnage_guest.settle import settled  # noqa: E402

FORKED = True  # ../fork_servers.py

LENGTHS = """
import random
lengths = [random.Random(3).randrange(1, 512) for _ in range(1)] + [random.Random(n).randrange({}) for n in range(399)]
lengths = [1 + length * 100 for length in lengths]
lengths[89] = 1 << 17
"""
LENGTH_LOADER = """
class Lengths(torch.utils.data.Dataset):
    def __len__(self): return len(lengths)
    def __getitem__(self, i): return torch.zeros(lengths[i])
for batch in torch.utils.data.DataLoader(Lengths()): update(batch.shape[1])
"""
LENGTH_LOOP = "for length in lengths: update(length)"


def test_new_inputs_that_keep_coming():
    assert settled(60, 1, 20, 6) and not settled(59, 1, 20, 6)
    assert settled(110, 1, 60, 6), "a few: 50 steps without a new one do"
    assert not settled(179, 1, 60, 7) and settled(180, 1, 60, 7), "many: twice as long as it took until the last one"


@pytest.mark.parametrize(
    "volumes, expected",
    [([5] * 40, False), ([5, 6] * 20, False), ([5, 6, 7] * 14, False), ([1, 2, 3, 4, 5, 6, 7, 8] * 5, False),
     ([random.Random(n).randrange(4) for n in range(40)], True)],
    ids=["equal", "two optimizers", "three", "eight", "random"],
)  # fmt: skip
def test_turns_are_no_variation(monkeypatch, volumes, expected):
    shapes._recent.clear()
    shapes._recent.extend(volumes)
    assert shapes.vary() is expected


@pytest.mark.parametrize("kinds", [512, 8])
def test_random_lengths_from_a_loader(run_with, wheel, kinds):
    done = run_with(wheel, HEAD + TRAIN + LENGTHS.format(kinds) + LENGTH_LOADER, TONNAGE_STEPS="auto")
    assert done.status == 0 and done.document["hook_error"] is None, done.stderr
    check_lengths(done.document["steps"], done.words[1])


@pytest.mark.parametrize("kinds", [512, 8])
def test_random_lengths_in_a_loop(run_with, wheel, kinds):
    body = LENGTHS.format(kinds) + "import _tonnage_guest.settle as s\ns._PATIENCE = 0\n" + LENGTH_LOOP
    done = run_with(wheel, HEAD + TRAIN + body, TONNAGE_STEPS="auto")
    assert done.document["hook_error"] is None and done.words[3] != 0, done.stderr
    told = [line for line in done.document["steps"]["not_seen"] if line.startswith("shapes ")]
    assert told and ("still changing" in told[0] if kinds == 512 else "a larger one may come later" in told[0])


def check_lengths(steps, peak):
    told = [line for line in steps["not_seen"] if line.startswith("shapes ")]
    assert told, steps
    if steps["seen"] >= 200:
        assert "still changing when the loops were cut short" in told[0] and peak == 1000 + (1 << 17)
    else:
        assert "a larger one may come later (9 shapes" in told[0] and steps["seen"] >= 64


def test_losses_kept_on_the_device_are_no_growth(run_with, wheel):
    body = "while True: fake_cuda.use(512); update()"
    assert stop_after(run_with, wheel, body, TONNAGE_STEPS="auto") == (10, "settled", 1)


def test_a_larger_batch_later_is_waited_for(run_with, wheel):
    body = LOADERS + "n = 0\nwhile True: n += 1; update(1 << 20 if n == 9 else 2)"
    assert stop_after(run_with, wheel, body, TONNAGE_STEPS="auto") == (27, "settled", 1)


@pytest.mark.parametrize("graph, expected", [(False, (10, "settled", 1)), (True, (200, "limit", 2))])
def test_passes_that_build_graphs_may_be_a_warm_up(run_with, wheel, graph, expected):
    body = f"torch.set_grad_enabled({graph})\nwhile True: net(torch.ones(2, 4))"
    assert stop_after(run_with, wheel, body, train="", TONNAGE_STEPS="auto") == expected


def test_what_comes_after_a_warm_up_is_seen(run_with, wheel):
    body = "for _ in range(40): net(torch.ones(2, 4))\n" + TRAIN + "while True: update()"
    assert stop_after(run_with, wheel, body, train="", TONNAGE_STEPS="auto") == (9, "settled", 1)


def test_the_time_that_a_fork_server_has_waited_is_no_time_of_the_program(run_with, wheel):
    """An hour after its imports, a process is forked for a run."""
    done = run_with(wheel, HEAD + """
from _tonnage_guest import boot, settle
from _tonnage_guest.state import state
before = state.last_import - 3600 if state.last_import else state.started - 3600
state.last_import = before
print(settle._elapsed() >= 3600)
boot._in_child()
boot._renewed()
print(settle._elapsed() < 3600)
""")
    assert done.stdout.split() == ["True", "True"], done.stderr
