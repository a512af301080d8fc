# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel; who this rank is says whatever launcher there is: torchrun, accelerate, srun or mpirun."""

import os

import torch
import torch.distributed as dist
from torch import nn

words = os.environ
rank = int(words.get("RANK") or words.get("OMPI_COMM_WORLD_RANK") or words.get("SLURM_PROCID"))
world = int(words.get("WORLD_SIZE") or words.get("OMPI_COMM_WORLD_SIZE") or words.get("SLURM_NTASKS"))
words.setdefault("MASTER_ADDR", "localhost")
words.setdefault("MASTER_PORT", "29571")
torch.cuda.set_device(rank)
dist.init_process_group("nccl", rank=rank, world_size=world)
model = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(64, 2048).cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
