# SPDX-License-Identifier: Apache-2.0
"""A verdict needs evidence, on real programs: doc/design/0018-evidence.md."""

import re

import pytest
from conftest import MAIN

FORKED = True  # ../fork_servers.py

MODEL = """
import torch
m = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
"""
TRAIN = """
o = torch.optim.AdamW(m.parameters())
for i in range(12):
    c(torch.randn(64, 256, device="cuda")).pow(2).mean().backward()
    o.step()
    o.zero_grad()
print("done")
"""

# A backend that takes as long as it takes until the run has counted twelve seconds of compiling.
SLOW_BACKEND = MODEL + """
import os, time
def slow(graph, inputs):
    while True:
        with open(os.path.join(os.environ["TONNAGE_RUN"], "ledger"), "rb") as file:
            file.seek(64 + 8 * 7)
            if int.from_bytes(file.read(8), "little") >= 12000:
                return graph.forward
        time.sleep(0.05)
c = torch.compile(m, backend=slow)
""" + TRAIN

TUNED = """
import os
os.environ["TRITON_CACHE_DIR"] = os.path.abspath("triton")
import torch, triton, triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 1 << b}, num_warps=w) for b in range(7, 12) for w in (1, 2, 4, 8)], key=["n"])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

class Double(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y

m = Double()
for i in range(400):
    m(torch.ones(1 << 20, device="cuda"))
"""

INDUCTOR = MODEL + "c = torch.compile(m, mode='max-autotune-no-cudagraphs')\n" + TRAIN

COMPILED = {"backend": (SLOW_BACKEND, 6), "triton": (TUNED, 6), "inductor": (INDUCTOR, 30)}


@pytest.fixture
def program(tonnage, tmp_path):
    """program(text, *options): the text as a program, without anybody's cached kernels."""

    def run(text, *options, words=()):
        path = tmp_path / "program.py"
        path.write_text(text)
        env = {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
               "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"} if text == INDUCTOR else {}  # fmt: skip
        return tonnage(MAIN, [*words, str(path)], "--gpu=rtx3060", *options, env=env)

    return run


@pytest.mark.parametrize("kind", ["backend", "triton", pytest.param("inductor", marks=pytest.mark.long)])
def test_the_limit_waits_for_compilers(program, kind):
    """Without compiling, none of these takes so long (and the five seconds that a stop is given) until its first step."""
    text, seconds = COMPILED[kind]
    run = program(text, "--seconds=%d" % seconds)
    assert run.verdict == "fits" and run.status == 0, run.explain()
    assert run.report["steps"]["seen"] >= 1, run.explain()


def test_a_limit_that_came_while_it_compiled_decides_nothing(program):
    run = program(SLOW_BACKEND, "--seconds=6", "--compile-seconds=1")
    assert run.verdict == "undecided" and run.status == run.report["exit_status"] == 12, run.explain()
    assert run.report["findings"][0]["id"] == "no_step" and "still compiling" in run.report["findings"][0]["what"]
    assert "--compile-seconds" in run.report["findings"][0]["do"] and run.stderr.splitlines()[-1]


ENDS = {  # what programs without steps do, by themselves -> verdict
    "import torch": "undecided",
    "import torch; torch.ones(3) + 1; torch.cuda.is_available()": "undecided",
    "import torch; torch.ones(1 << 20, device='cuda')": "fits",
    "import torch; torch.nn.Linear(8, 8).cuda()(torch.ones(2, 8, device='cuda'))": "fits",
}


@pytest.mark.parametrize("text", ENDS)
def test_programs_that_end_without_a_step(program, text):
    run = program(text)
    assert run.verdict == ENDS[text] and run.status == (0 if ENDS[text] == "fits" else 12), run.explain()


SKIPPED = MODEL + """
o = torch.optim.AdamW(m.parameters())
for i in range(8):
    loss = m(torch.randn(64, 256, device="cuda")).pow(2).mean()
    loss.backward()
    if %s:
        o.step()
    o.zero_grad()
"""


@pytest.mark.parametrize("when, updated", [("loss.item() > 1e6", False), ("i == 5", True)])
def test_a_training_without_an_update_is_a_lower_bound(program, when, updated):
    run = program(SKIPPED % when)
    told = [row["id"] for row in run.report["findings"]]
    assert run.verdict == "fits" and ("no_update" not in told) == updated, run.explain()
    assert run.report["bound"] == (None if updated else "lower"), run.explain()


HALVES = MODEL + """
for shift in (42, 41, 40, 10):
    try:
        y = m(torch.empty(1 << shift, 256, device="cuda"))
        break
    except torch.OutOfMemoryError:
        print("halving")
raise IndexError("counts.max() of nothing")
"""

TESTS = """
import pytest, torch

def test_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(100 << 30, device="cuda")

def test_values():
    assert torch.ones(3, device="cuda").cpu().sum() == -7
"""


@pytest.mark.parametrize("text, words, handled", [(HALVES, (), 3), (TESTS, ("-m", "pytest", "-p", "no:cacheprovider"), 1)])
def test_what_was_got_over_is_not_the_verdict(program, text, words, handled):
    run = program(text, words=words)
    assert run.verdict == "failed" and run.status == 1 and run.report["out_of_memory"] is None, run.explain()
    assert [(row["count"], row["by"]) for row in run.report["handled_out_of_memory"]] == [(handled, "program")]

# cudnn.benchmark empties the cache behind each shape that it has not tried yet.
BENCHMARKED = """
import torch
torch.backends.cudnn.benchmark = True
m = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), torch.nn.Conv2d(64, 64, 3)).cuda()
o = torch.optim.SGD(m.parameters(), 1e-3)
for i in range(10):
    m(torch.randn(16, 3, 200 + 8 * i, 200, device="cuda")).mean().backward()
    o.step()
    o.zero_grad()
"""

# The card is full of what the cache holds, which is too small for the next tensor: the allocator frees it and asks again.
FULL = """
import torch
m = torch.nn.Linear(8, 8).cuda()
o = torch.optim.SGD(m.parameters(), 1e-3)
for i in range(16):
    m(torch.randn(4, 8, device="cuda")).mean().backward()
    torch.empty((6 + i) << 29, dtype=torch.uint8, device="cuda")
    o.step()
    o.zero_grad()
"""


@pytest.mark.parametrize("text, full", [(BENCHMARKED, False), (FULL, True)])
def test_a_full_card_is_told_from_an_emptied_cache(program, text, full):
    run = program(text, "--steps=all")
    assert run.verdict == "fits", run.explain()
    assert ("segment_churn" in [row["id"] for row in run.report["findings"]]) == full, run.explain()


# It uses the second of two cards, as a script does that was written for somebody's machine.
SECOND = """
import torch
m = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for layer in range(40)]).to("cuda:1")
m(torch.randn(40000, 4096, device="cuda:1")).mean().backward()
"""


def test_a_program_on_one_of_two_cards_is_spread_over_none(program):
    run = program(SECOND, "--gpus=2")
    assert run.status == 10 and run.report["findings"][0]["id"] != "uneven_cards", run.explain()
    assert "spread" not in run.stderr


TRACED = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(65536, 10)).cuda()
torch.jit.trace(net, torch.ones(1, 3, 32, 32, device="cuda"), check_trace=False)
for batch in (torch.utils.data.DataLoader(torch.ones(40000, 3, 32, 32), batch_size=40000)):
    net(batch.cuda()).sum().backward()
"""


def test_a_model_that_is_traced_is_no_evidence_and_no_obstacle(tonnage):
    """In torch.jit.trace (TensorBoard's add_graph) sizes are tensors: nothing of ours reads them, so nothing is warned of and nothing is lost."""
    run = tonnage(MAIN, ["-c", TRACED], "--gpu=rtx3060")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert run.report["out_of_memory"]["step"] == 1 and run.report["steps"]["seen"] == 0, run.explain()
    assert not [row for row in run.report["sensors"] if row["state"] == "lost"], run.explain()
    assert "_tonnage_guest" not in run.stderr and "TracerWarning" not in run.stderr, run.stderr


SEVERAL = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048, bias=False)

class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(20)))
        nn.ModuleList(self.layers)  # a container that is gone at once
        self.more = nn.ModuleList()
        self.more.insert(0, Block())  # no hook of torch is told

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(30)))

models = [TextEncoder(), UNet()][%s:]
for model in models:
    model.cuda()
"""


def test_the_parameters_of_several_models_are_told_by_their_classes(tonnage):
    """The line that moves them is the same; alone, a model needs no name."""
    run = tonnage(MAIN, ["-c", SEVERAL % 0], "--gpu=rtx3060", "--memory=816MiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    held = {row["what"]: row["bytes"] for row in run.report["out_of_memory"]["holders"] if row["category"] == "parameters"}
    assert held["module TextEncoder"] == 21 << 24 and 0 < held["module UNet"] < 30 << 24, run.explain()
    alone = tonnage(MAIN, ["-c", SEVERAL % 1], "--gpu=rtx3060", "--memory=500MiB")
    assert not [row for row in alone.report["out_of_memory"]["holders"] if "UNet" in (row["what"] or "")], alone.explain()


BUFFERS = """
import copy, torch
class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1 << 24))
class Layer(torch.nn.Linear):
    def __init__(self):
        super().__init__(1024, 1024)
        self.register_buffer("mean", torch.zeros(1 << 22))
with torch.device("cuda"):
    layer, layer.cache = Layer(), Cache()
moved, copied = Cache().cuda(), copy.deepcopy(layer.cache)
layer(torch.zeros(8, 1024, device="cuda"))
"""


def test_buffers_are_named_by_the_module_that_has_nothing_else(tonnage, tmp_path):
    """As caches of keys and values are, made on the card, moved there or copied; others are part of a model."""
    (tmp_path / "buffers.py").write_text(BUFFERS)
    run = tonnage(MAIN, [str(tmp_path / "buffers.py")], "--gpu=rtx3060")
    held = {}
    for holder in run.report["at_peak"]["holders"]:
        held[holder["what"]] = held.get(holder["what"], 0) + holder["bytes"]
    assert (held["buffers of Cache"], held["kept by modules"]) == (3 << 26, 1 << 24), run.explain()


CAUGHT = """
import torch
net = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(20))).cuda()
kept = []
def step(rows):
    return net(torch.ones(rows, 2048, device="cuda")).sum()
first = step(4096)
try:
    torch.empty(8 << 30, device="cuda")
except torch.OutOfMemoryError as error:
    %s
second = step(4096)
"""


@pytest.mark.parametrize("handler, holds", [("pass", False), ("kept.append(error)", True), ("second = step(4096)", True)])
def test_an_exception_holds_activations_only_while_it_lives(tonnage, handler, holds):
    """Two passes are kept by what the program does with them. The out-of-memory between them is over, unless somebody has its exception."""
    run = tonnage(MAIN, ["-c", CAUGHT % handler], "--gpu=rtx3060", "--memory=1500MiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert ("held_by_exception" in [row["id"] for row in run.report["findings"]]) is holds, run.explain()


RECURRENT = """
import torch
class Segments(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 1024)
        self.layers = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(8)])
    def forward(self, tokens, memory=None):
        x = self.embedding(tokens)
        x = self.layers(x if memory is None else torch.cat((memory, x), 1))
        return x.mean(), %s
model, memory = Segments().cuda(), None
for segment in range(4):
    tokens = torch.zeros(16, %s, dtype=torch.long, device="cuda")
    loss, memory = model(tokens, memory)
    loss.backward()
"""


@pytest.mark.parametrize("returned, tokens, larger", [
    ("x[:, -512:].detach()", "512", False), ("None", "512 * (1 + segment // 2)", True),
], ids=["a state", "tokens"])  # fmt: skip
def test_what_the_model_returned_is_no_larger_input(program, returned, tokens, larger):
    """A state is none that goes back into the model; a longer batch is."""
    run = program(RECURRENT % (returned, tokens), "--memory=1000MiB")
    found = [finding["id"] for finding in run.report["findings"]]
    assert run.report["verdict"] == "out_of_memory" and ("larger_input" in found) == larger, run.explain()
