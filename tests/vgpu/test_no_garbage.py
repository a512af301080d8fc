# SPDX-License-Identifier: Apache-2.0
"""The hook holds nothing of the program's: what a function has is freed when it returns, also while Python collects no garbage. A frame of
the hook that held itself would keep all frames outside it, and the tensors in them."""

import pytest
from conftest import MAIN

FORKED = True  # ../fork_servers.py

ENVIRONMENTS = (MAIN, "torch-2.15.0")
HEAD = """
import gc, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
gc.collect()
gc.disable()
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1 << 14)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
"""
# A step has 16 MiB or more in variables of its own.
STEPS = {
    "a read in backward": """
rows = torch.sparse_coo_tensor(torch.arange(64).repeat(2, 1), torch.ones(64), (64, 64)).cuda()
weight = nn.Parameter(torch.rand(64, 1 << 16, device="cuda"))
def step():
    kept = torch.relu(torch.spmm(rows, weight))
    (kept * kept).sum().backward()
    weight.grad = None
""",
    "reads": """
def step():
    kept = model(torch.rand(256, 64, device="cuda"))
    loss = kept.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loss.isnan().any():
        print(loss.item())
    kept.argmax(1).tolist(), (kept[kept > 0]).sum().item()
""",
    "out of memory, caught": """
def step():
    kept = model(torch.rand(256, 64, device="cuda"))
    try:
        torch.empty(1 << 40, device="cuda")
    except torch.OutOfMemoryError as error:
        print(type(error).__name__)
""",
    "a loader, an evaluation, autocast and a scaler": """
scaler = torch.amp.GradScaler("cuda")
loader = DataLoader(TensorDataset(torch.rand(512, 64)), batch_size=256)
def step():
    model.train()
    for (batch,) in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            kept = model(batch.cuda())
            loss = kept.square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        kept = model(torch.rand(256, 64, device="cuda"))
""",
    "checkpointing and a hook": """
from torch.utils.checkpoint import checkpoint
def step():
    kept = checkpoint(model, torch.rand(256, 64, device="cuda"), use_reentrant=False)
    kept.register_hook(lambda gradient: print(gradient.sum().item()))
    kept.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
}
TAIL = """
held = []
for number in range(14):
    step()
    held.append(torch.cuda.memory_allocated() >> 20)
print("held", *held)
"""


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_has_goes_with_it(tonnage, environment, step):
    run = tonnage(environment, ["-c", HEAD + STEPS[step] + TAIL], "--gpu=rtx3060", "--steps=all")
    held = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("held")][0]
    assert len(held) == 14 and len(set(held[1:])) == 1, (held, run.explain())  # the first makes gradients, state, workspaces
