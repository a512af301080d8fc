"""DistributedDataParallel on one card: buckets, and NCCL's watchdog, which releases what was reduced."""

import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
torch.distributed.init_process_group("nccl", rank=0, world_size=1)
model = DistributedDataParallel(nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(16))).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(5):
    model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
