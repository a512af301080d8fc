# SPDX-License-Identifier: Apache-2.0
"""What a program reads back of a card that does not compute, and when a program that never steps is stopped."""

import hashlib
import pathlib
import shutil

import pytest
from conftest import WHEELS

FORKED = True  # ../fork_servers.py

GUARDED = """\
import torch
scaler = torch.amp.GradScaler("cuda")
weight = torch.randn(4, 4, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(3):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = (weight @ weight).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    if not torch.isfinite(loss) or not torch.isfinite(weight).all() or torch.isnan(loss):
        raise SystemExit("loss is not finite")
assert torch.all(torch.isfinite(weight)).item()
print("scale", scaler.get_scale())
print(torch.full((3,), 7.0, device="cuda").tolist(), torch.zeros(2, device="cuda").tolist())
"""

COMPILED = """\
import torch

@torch.compile(fullgraph=True, backend="eager")
def clean(x):
    return torch.where(torch.isfinite(x), x, 0.0).sum(), torch.all(torch.isfinite(x)), x.isfinite().all()

clean(torch.randn(64, device="cuda"))
"""

STEPLESS = """\
import time, torch
held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
while True:
    torch.empty(100, device="cuda")
    time.sleep(0.01)
"""


CONSTANTS = """\
import torch

def same(found, wanted):
    found = found.tolist() if hasattr(found, "tolist") else found
    assert found == wanted, (found, wanted)

types = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
         torch.float32, torch.float64, torch.float16, torch.bfloat16]
for dtype in types:
    same(torch.arange(3, 13, 2, dtype=dtype, device="cuda"), [3, 5, 7, 9, 11])
    left = torch.tensor([1, 2, 3, 250 if dtype is torch.uint8 else -4], dtype=dtype)
    right = torch.tensor([2, 2, 2, 2], dtype=dtype)
    for compare in (torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne):
        same(compare(left.cuda(), right.cuda()), compare(left, right).tolist())
        same(compare(left.cuda(), 2), compare(left, 2).tolist())
same(torch.arange(0.5, 3.0, 0.25, device="cuda"), torch.arange(0.5, 3.0, 0.25).tolist())
same(torch.arange(5, -5, -3, device="cuda"), [5, 2, -1, -4])
same((torch.full((), 3.0, device="cuda") > torch.full((), 2.0, device="cuda")).item(), True)
x = torch.arange(5, device="cuda")
same([(x < 3).all().item(), (x < 5).all().item(), (x > 3).any().item(), (x > 4).any().item()], [False, True, True, False])
same([(x == x).all().item(), (x != x).any().item(), torch.equal(x, torch.arange(5, device="cuda"))], [True, False, True])
whole = torch.tensor([3, -7, 9, 4] * 50, device="cuda")
same([whole.max().item(), whole.min().item(), whole.int().max().item(), whole[::2].min().item()], [9, -7, 9, 3])
same((x > 1) & (x < 4), [False, False, True, True, False])
same((x < 1) | (x > 3), [True, False, False, False, True])
same(~(x < 2), [False, False, True, True, True])
same(x[1:4] > 2, [False, False, True])  # not aligned
same((torch.arange(12, device="cuda").view(3, 4) >= 0).all().item(), True)
same(torch.isnan(torch.tensor([1.0, float("nan")], device="cuda")), [False, True])
same(torch.arange(100_000, device="cuda")[99_990].item(), 99_990)
print("as on a card")
"""

COMPUTED = """\
import torch
x = torch.ones(4, 4, device="cuda")
y = x @ x
a = (y > 1).any().item()
b = (torch.arange(1_000_000, device="cuda") > 5).any().item()
c = (torch.arange(4, device="cuda").sqrt() > 1.5).tolist()
print(a, b, c)
"""


@pytest.mark.parametrize("wheel", WHEELS)
def test_constants_and_what_is_compared_with_them_are_known(tonnage, wheel):
    run = tonnage(wheel, ["-c", CONSTANTS], "--steps=all")
    assert run.verdict == "fits" and "as on a card" in run.stdout, run.explain()
    assert run.report["coverage"]["computed_values_read"] == [], run.explain()


@pytest.mark.parametrize("wheel", WHEELS)
def test_elementwise_work_on_what_is_known_is_exact(tonnage, wheel):
    run = tonnage(wheel, "programs/followed.py", "--steps=all")
    assert run.verdict == "fits" and "compared 318 different []" in run.stdout, run.explain()
    assert run.report["coverage"]["computed_values_read"] == [], run.explain()


INDICES = """
import torch
batch = torch.tensor([0, 0, 1, 2, 2, 2, 4], device="cuda")
x = torch.ones(7, 16, device="cuda") @ torch.ones(16, 16, device="cuda")
for _ in range(2):  # in thousands of pieces
    torch.cat([torch.ones(3000, 8, device="cuda")[torch.arange(3000, device="cuda")], torch.zeros(3000, 4, device="cuda")], 1)
rows = batch.unsqueeze(1).repeat(1, 16)
torch.zeros(5, 16, device="cuda").scatter_reduce_(0, rows, x, reduce="mean", include_self=False)
torch.zeros(5, 16, device="cuda").scatter_add_(0, batch[:, None].expand(-1, 16), x)
torch.zeros(5, 16, device="cuda").index_add_(0, batch, x)
counts = torch.zeros(5, dtype=torch.long, device="cuda").scatter_add_(0, batch, torch.ones_like(batch))
print("graphs", int(batch.max()) + 1, "nodes", counts.tolist(), tuple(torch.nn.functional.one_hot(batch).shape))
"""


@pytest.mark.parametrize("wheel", WHEELS)
def test_indices_stay_known_to_the_kernels_that_read_them(tonnage, wheel):
    run = tonnage(wheel, ["-c", INDICES], "--steps=all")
    assert run.verdict == "fits" and "graphs 5 nodes [2, 1, 3, 0, 1] (7, 5)" in run.stdout, run.explain()
    assert run.report["coverage"]["computed_values_read"] == [], run.explain()


@pytest.mark.parametrize("wheel", WHEELS)
def test_computed_values_are_counted_also_behind_a_comparison(tonnage, wheel):
    run = tonnage(wheel, ["-c", COMPUTED], "--steps=all")
    assert run.verdict == "fits", run.explain()
    # as likely as not: a number is taken to be 0.5, a whole one 1
    assert "False False [False, False, False, False]" in run.stdout, run.explain()
    read = run.report["coverage"]["computed_values_read"]
    assert [(place["line"], place["count"]) for place in read] == [(4, 1), (5, 1), (6, 1)], run.explain()


@pytest.mark.parametrize("wheel", WHEELS)
def test_guards_against_infinite_losses_do_not_stop_a_program(tonnage, wheel):
    run = tonnage(wheel, ["-c", GUARDED], "--steps=all")
    assert run.verdict == "fits", run.explain()
    assert "scale 65536.0" in run.stdout
    assert "[7.0, 7.0, 7.0] [0.0, 0.0]" in run.stdout


def test_compiling_is_not_disturbed(tonnage):
    run = tonnage("torch-2.11.0", ["-c", COMPILED], "--steps=all")
    assert run.verdict == "fits", run.explain()


def test_a_program_that_never_steps_is_stopped(tonnage):
    run = tonnage("torch-2.11.0", ["-c", STEPLESS], env={"TONNAGE_SECONDS": "2"})
    assert run.verdict == "undecided" and run.status == 12, run.explain()  # no step was seen
    assert run.report["steps"]["stopped"] == "limit", run.explain()
    assert run.device_bytes > 1 << 30, run.explain()


RECORDER = """\
import torch
torch.cuda.memory._record_memory_history()
held = torch.ones(1000, device="cuda")
events = torch.cuda.memory._snapshot()["device_traces"][0]
print("events", sum(event["action"] == "alloc" for event in events))
"""


@pytest.mark.parametrize("wheel", WHEELS)
def test_the_programs_own_recorder_goes_on_under_a_snapshot(tonnage, wheel, tmp_path):
    run = tonnage(wheel, ["-c", RECORDER], "--steps=all", f"--snapshot={tmp_path / 'peak.pickle'}")
    assert run.verdict == "fits", run.explain()
    assert "events 1" in run.stdout, run.explain()


LARGE = """\
import torch

def spoil():
    \"\"\"Leaves memory of the sizes below, full of ones, to whoever allocates next.\"\"\"
    for size in (2 << 20, 4 << 20, 8 << 20):
        torch.ones(size, dtype=torch.uint8)

pinned = torch.ones(3 << 20, dtype=torch.uint8).pin_memory()
for try_ in range(100):
    spoil()
    zeros = torch.zeros((1 << 19) + 4321 * try_, device="cuda")
    assert zeros.cpu().count_nonzero() == 0, try_
x = torch.randn(1024, 1024, device="cuda")
spoil()
assert (x @ x).cpu().count_nonzero() == 0
pinned.copy_(torch.randint(0, 255, (3 << 20,), dtype=torch.uint8, device="cuda"))
assert pinned.count_nonzero() == 0
inside = torch.ones(1 << 21)
inside[1000:-1000].copy_((x @ x).flatten().repeat(2)[: (1 << 21) - 2000])
assert inside.count_nonzero() == 2000 and inside[:1000].all() and inside[-1000:].all()
print("all zero")
"""

CHECKPOINT = """\
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(3)]).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    net(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    torch.ones(4 << 20).sum()  # host memory that is used again
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
"""


@pytest.mark.parametrize("wheel", WHEELS)
def test_large_values_are_zero_whatever_the_host_held(tonnage, wheel):
    run = tonnage(wheel, ["-c", LARGE], "--steps=all")
    assert run.verdict == "fits" and "all zero" in run.stdout, run.explain()
    # zeros are known at any size; the others were computed
    assert [(row["line"], row["count"]) for row in run.report["coverage"]["computed_values_read"]] == [
        (15, 1), (16, 1), (19, 1)
    ], run.explain()  # fmt: skip


def test_checkpoints_of_two_runs_are_alike(tonnage):
    hashes = set()
    for _ in range(2):
        run = tonnage("torch-2.11.0", ["-c", CHECKPOINT], "--steps=all")
        assert run.verdict == "fits", run.explain()
        (saved,) = pathlib.Path(run.report["scratch"]).rglob("checkpoint.pt")
        assert saved.stat().st_size > 3 * 3 * (4 << 20), "parameters and two moments of each"
        hashes.add(hashlib.sha256(saved.read_bytes()).hexdigest())
        shutil.rmtree(pathlib.Path(run.report["scratch"]).parent.parent)
        assert run.report["coverage"]["computed_values_read"] == [], run.explain()
    assert len(hashes) == 1
