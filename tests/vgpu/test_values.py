# SPDX-License-Identifier: Apache-2.0
"""What a program reads back of a card that does not compute, and when a program that never steps is stopped."""

import pytest

WHEELS = ["torch-2.11.0", "torch-2.6.0", "torch-2.15.0"]

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
    assert run.verdict == "fits" and run.status == 0, run.explain()
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
