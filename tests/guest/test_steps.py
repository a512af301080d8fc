# SPDX-License-Identifier: Apache-2.0
"""Steps, and when a run has settled. On the FAKE allocator of fake_cuda.py."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))

FORKED = True  # ../fork_servers.py
HEAD = """\
import torch, fake_cuda
fake_cuda.start()
fake_cuda.use(1000)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    def forward(self, x):
        return self.inner(x)

net = Net()
"""
TRAIN = """\
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
def update(size=2):
    fake_cuda.use(size); fake_cuda.free(size)
    net(torch.ones(size, 4)).sum().backward()
    optimizer.step()
"""


def seen(done):
    assert done.document["hook_error"] is None, done.stderr
    steps = done.document["steps"]
    return steps["seen"], steps["unit"], steps["stopped"]


def test_optimizer_updates(run_with, wheel):
    done = run_with(wheel, HEAD + TRAIN + "for _ in range(5): update()")
    assert seen(done) == (5, "optimizer", None) and done.words[:3] == (5, 1002, 1002)
    device = done.document["devices"][0]
    assert (device["allocated_peak"], device["allocated"]) == (1002, 1000)


def test_no_hook_of_torchs_modules_is_used(run_with, wheel):
    """torch.compile refuses to trace through global hooks, and torch warns of them."""
    done = run_with(wheel, HEAD + "print(bool(torch.nn.modules.module._has_any_global_hook()))\nnet(torch.ones(2, 4))\n" + TRAIN
                    + "update(); print(bool(torch.nn.modules.module._has_any_global_hook()))")
    assert done.stdout == "False\nFalse\n", done.stderr
    assert done.document["regions"]["forward"]["line"] > 0 and seen(done)[:2] == (1, "optimizer")


def test_two_optimizers(run_with, wheel):
    done = run_with(wheel, HEAD + TRAIN + "other = torch.optim.SGD(net.parameters(), lr=.1)\n"
                    "for _ in range(3):\n    update(); other.step()")
    assert seen(done)[:2] == (6, "optimizer")


WHOLE = """\
class Whole(torch.optim.Optimizer):
    \"\"\"Steps by one optimizer a parameter, as ZeroRedundancyOptimizer (hooked) and CPUOffloadOptimizer (not) do.\"\"\"
    def __init__(self, params, hooked):
        self.parts = [torch.optim.SGD([p], lr=.1) for p in params]
        if hooked:
            super().__init__([torch.nn.Parameter(torch.ones(1))], {})
        self.param_groups = []
    def step(self, closure=None):
        for part in self.parts:
            part.step()
"""


@pytest.mark.parametrize("hooked", [False, True])
def test_an_optimizer_that_steps_by_others_makes_one_step(run_with, wheel, hooked):
    done = run_with(wheel, HEAD + WHOLE + "whole = Whole(list(net.parameters()), %s)\n" % hooked + """
for _ in range(3):
    net(torch.ones(2, 4)).sum().backward()
    whole.step()
""")
    assert seen(done)[:2] == (3, "optimizer")


def test_two_that_are_wrapped_are_two_steps(run_with, wheel):
    """A GAN under accelerate: its wrapper is an optimizer whose step calls another one's."""
    done = run_with(wheel, HEAD + WHOLE + """
both = [Whole([p], False) for p in list(net.parameters())[:2]]
for _ in range(3):
    for one in both:
        net(torch.ones(2, 4)).sum().backward()
        one.step()
""")
    assert seen(done)[:2] == (6, "optimizer")


def test_passes_before_the_optimizer_are_no_steps(run_with, wheel):
    """Warm-up, checks of autocast, anchors: the first step of training is the first."""
    done = run_with(wheel, HEAD + "for _ in range(28): net(torch.ones(2, 4))\n" + TRAIN + """
net(torch.ones(2, 4))
fake_cuda.run_out(1 << 30)
""")
    assert done.document["out_of_memory"]["step"] == 1 and done.document["steps"]["seen"] == 0


BATCHES = {  # what a loader gives -> samples
    "(torch.ones(8, 3, 4, 4), torch.ones(8))": 8,
    "([torch.ones(3, 4, 5 + i) for i in range(8)], [{'boxes': torch.ones(i, 4)} for i in range(8)])": 8,
    "(tuple(torch.ones(3, 4, 4) for i in range(8)), tuple({'boxes': torch.ones(i, 4)} for i in range(8)))": 8,
    "{'input_ids': torch.ones(6, 128), 'labels': torch.ones(6, 128)}": 6,
    "[torch.ones(3, 4, 4) for i in range(5)]": 5,
    "[torch.ones(8, 3), torch.ones(8, 3)]": 8,
    "[{'image': torch.ones(3, 4, 4)} for i in range(7)]": 7,
    "torch.ones(9, 2)": 9,
}


@pytest.mark.parametrize("batch", BATCHES)
def test_samples_of_a_batch(run_with, wheel, batch):
    done = run_with(wheel, HEAD + "from torch.utils.data import DataLoader\n"
                    "for batch in DataLoader(range(3), batch_size=None, collate_fn=lambda _: %s): pass" % batch)
    assert done.document["steps"]["batch_size"] == BATCHES[batch]


def test_optimizers_inside_backward_are_one_step(run_with, wheel):
    done = run_with(wheel, HEAD + """
for parameter in net.parameters():
    optimizer = torch.optim.SGD([parameter], lr=.1)
    parameter.register_post_accumulate_grad_hook(lambda p, o=optimizer: o.step())
for _ in range(3):
    net(torch.ones(2, 4)).sum().backward()
""")
    assert seen(done)[:2] == (3, "optimizer")


def test_forward_passes(run_with, wheel):
    done = run_with(wheel, HEAD + "for n in (2, 2, 3): net(torch.ones(n, 4))")
    assert seen(done)[:2] == (3, "forward") and done.document["steps"]["input_shapes"] == 2


def test_loader_passes(run_with, wheel):
    done = run_with(wheel, HEAD + """
data = torch.utils.data.TensorDataset(torch.ones(10, 4))
for workers in (0, 2):
    for batch, in torch.utils.data.DataLoader(data, batch_size=2, num_workers=workers):
        net(batch)
""")
    assert seen(done)[:2] == (9, "loader")  # the last pass ends unseen
    assert len(done.documents) == 1


def stop_after(run_with, wheel, body, train=TRAIN, **environment):
    # the program plays the supervisor: it sees the request and ends itself
    play = """
import os, struct, threading, time
def supervise():
    while True:
        with open(os.environ["TONNAGE_RUN"] + "/ledger", "rb") as file:
            words = struct.unpack("<8Q", file.read(128)[64:])
        if words[3]:
            os.kill(os.getpid(), 9)
        time.sleep(.005)
threading.Thread(target=supervise, daemon=True).start()
"""
    done = run_with(wheel, HEAD + train + play + body, **environment)
    assert done.status == -9, done.stderr
    assert done.words[5] == done.document["pid"]
    return seen(done)[0], seen(done)[2], done.words[3]


@pytest.mark.parametrize(
    "body, settings, expected",
    [
        ("while True: update()", {"TONNAGE_STEPS": "auto"}, (10, "settled", 1)),
        ("while True: update()", {"TONNAGE_STEPS": "3"}, (3, "limit", 2)),
        ("n = 2\nwhile True:\n    n += 1; update(n)", {"TONNAGE_STEPS": "auto"}, (200, "limit", 2)),
        ("update(9)\nfor n in range(2, 8): update(n)\nwhile True: update()", {"TONNAGE_STEPS": "auto"},
         (21, "settled", 1)),
        ("import time\nwhile True: update(); time.sleep(.3)", {"TONNAGE_STEPS": "auto", "TONNAGE_SECONDS": "1"}, None),
    ],
)  # fmt: skip
def test_stopping(run_with, wheel, body, settings, expected):
    found = stop_after(run_with, wheel, body, **settings)
    if expected is None:
        assert found[1:] == ("limit", 2) and found[0] < 9
    else:
        assert found == expected


@pytest.mark.parametrize("news, expected", [("2,", 6), ("7,", 16), ("1,", 21), (",", 21), (",3", 21)])
def test_a_trial_goes_as_far_as_the_unchanged_program_had_news(run_with, wheel, news, expected):
    body = "while True: update()" if expected == 6 else "update(9)\nfor n in range(2, 8): update(n)\nwhile True: update()"
    found = stop_after(run_with, wheel, body, TONNAGE_STEPS="auto", TONNAGE_TRIAL="1", TONNAGE_LAST_NEWS=news)
    # news that come later than they did there are waited for as ever, and so is that inputs stop to differ from step to step (16)
    assert found == (expected, "settled", 1)


TELL = """
import _tonnage_guest.ledger as words
def tell(step, epoch=None):  # as the supervisor does
    words._page.words[words._NEWS_STEP], words._page.words[words._NEWS_EPOCH] = step, epoch or 0
    words._page.words[words._NEWS] = 1 if epoch is None else 2
"""


@pytest.mark.parametrize("told, expected", [(2, 100), (0, 100), (120, 124)])
def test_a_trial_that_began_before_that_was_known_waits_for_it(run_with, wheel, told, expected):
    """However long: beyond the steps that a run has. Told, it goes as far as it would have."""
    body = TELL + "for _ in range(99): update()\ntell(%d, 0)\nwhile True: update()" % told
    found = stop_after(run_with, wheel, body, TONNAGE_STEPS="auto", TONNAGE_TRIAL="1", TONNAGE_LAST_NEWS="later")
    assert found == (expected, "settled", 1)


def test_a_trial_waits_no_longer_than_it_has_time(run_with, wheel):
    body = "import time\nwhile True: update(); time.sleep(.01)"
    settings = {"TONNAGE_STEPS": "auto", "TONNAGE_TRIAL": "1", "TONNAGE_LAST_NEWS": "later", "TONNAGE_SECONDS": "1"}
    assert stop_after(run_with, wheel, body, **settings)[1:] == ("limit", 2)


@pytest.mark.parametrize("asked", [True, False])
def test_what_is_known_is_told_early(run_with, wheel, asked):
    """Once, in the second step, and as if the program had been stopped there; it is not."""
    body = """
import json, glob, os
import _tonnage_guest.ledger as words
def look():
    found = glob.glob(os.environ["TONNAGE_RUN"] + "/guest/*.json")
    print(words._page.words[words._EARLY], json.load(open(found[0]))["steps"]["stopped"] if found else None)
update(); look()
update(); look()
words._page.words[words._EARLY] = 0
for _ in range(3): update()
look()
"""
    done = run_with(wheel, HEAD + TRAIN + body, TONNAGE_STEPS="auto", **({"TONNAGE_EARLY": "1"} if asked else {}))
    assert done.status == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert first.startswith("0 ") and second == ("1 settled" if asked else first) and last.startswith("0 "), done.stdout + done.stderr
    assert done.document["steps"]["stopped"] is None


LAST_STEP = """
import _tonnage_guest.ledger as words
import _tonnage_guest.settle as s
told = words._page.words[words._SETTLED_AFTER]
s.program_ended()
print(told, s.last_news())
"""
EVALUATION = """
from torch.utils.data import DataLoader, TensorDataset
with torch.no_grad():
    for size, (batch,) in enumerate(DataLoader(TensorDataset(torch.ones(64, 4)), batch_size=4)):
        net(batch); fake_cuda.use(%s); fake_cuda.free(%s)
"""


@pytest.mark.parametrize(
    "body, expected",
    [
        (TRAIN + "for _ in range(99): update()", "2 2"),  # told as soon as memory has settled,
        (TRAIN + "for _ in range(3): update()", "0 2"),  # and at the program's end, where nothing was left out
        (TRAIN + "for size in (2, 2, 9, 2): update(size)", "0 3"),
        (TRAIN + "for n in range(2, 12): update(n)", "0 None"),  # inputs that vary
        (TRAIN + EVALUATION % (1 << 20, 1 << 20), "0 1"),  # no step at all: evaluations alone have shown all that they have
        (TRAIN + EVALUATION % ("16 - size << 20", "16 - size << 20"), "0 None"),
    ],
)  # fmt: skip
def test_the_step_of_the_last_news(run_with, wheel, body, expected):
    done = run_with(wheel, HEAD + body + LAST_STEP, TONNAGE_STEPS="auto")
    assert done.stdout.strip() == expected, done.stdout + done.stderr


def test_what_a_cached_block_has_over_is_no_growth(run_with, wheel):
    body = "for n in range(99):\n    fake_cuda.have_over(min(n, 6) << 20)\n    update()"
    assert stop_after(run_with, wheel, body, TONNAGE_STEPS="auto") == (10, "settled", 1)


@pytest.mark.parametrize("news, each, expected", [("2,", 1 << 19, (6, "settled", 1)), ("2,", 1 << 24, (200, "limit", 2)), (None, 1 << 19, (200, "limit", 2))])
def test_a_cache_that_creeps_does_not_delay_a_trial(run_with, wheel, news, each, expected):
    """1 GiB is held, and what is reserved grows by half a MiB with each update: a trial does not wait for its end, as a run does."""
    body = "fake_cuda.use(1 << 30)\nfor n in range(999):\n    fake_cuda.have_cached(n * %d)\n    update()" % each
    trial = {"TONNAGE_TRIAL": "1", "TONNAGE_LAST_NEWS": news} if news else {}
    assert stop_after(run_with, wheel, body, TONNAGE_STEPS="auto", **trial) == expected


def test_settled_rule():
    os.environ.setdefault("TONNAGE_RUN", "")
    from _tonnage_guest.settle import settled

    assert not settled(8, 1, 1) and settled(9, 1, 1)
    assert not settled(29, 10, 10) and settled(30, 10, 10)
    assert settled(150, 100, 100) and not settled(149, 100, 100)
    assert not settled(20, 1, 15)
