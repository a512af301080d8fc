# SPDX-License-Identifier: Apache-2.0
"""Optimizers that step others, one a parameter: torchao's CPUOffloadOptimizer, and ZeroRedundancyOptimizer on one rank. Four
updates."""

import os
import sys

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
if sys.argv[1] == "offload":
    from torchao.optim import CPUOffloadOptimizer

    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW)
else:
    import torch.distributed as dist
    from torch.distributed.optim import ZeroRedundancyOptimizer

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29643", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
for _ in range(4):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
