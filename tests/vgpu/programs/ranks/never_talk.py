# SPDX-License-Identifier: Apache-2.0
"""Each rank works for itself, rank 0 with more: rank 1 begins when rank 0 has made 40 steps, in which its memory has long settled, and which soon makes no more."""

import os

import torch

torch.distributed.init_process_group("nccl")
device = int(os.environ["RANK"])
torch.cuda.set_device(device)
store = torch.distributed.distributed_c10d._get_default_store()
if device == 1:
    store.wait(["begun"])
kept = torch.zeros((2 - device) << 25, device=device)
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(100_000):
    model(torch.randn(8, 64, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 40:
        store.set("begun", "1")
    if step == 60 and device == 0:
        store.wait(["never"])
