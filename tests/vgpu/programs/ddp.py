"""DistributedDataParallel on one card, with NCCL by name (ddp.py nccl) or as PyTorch chooses it."""

import os
import sys

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group(*sys.argv[1:])
model = DistributedDataParallel(nn.Linear(512, 512).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(4):
    model(torch.randn(16, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
