# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel, whose ranks torch.multiprocessing starts."""

import os

import torch
import torch.distributed as dist
from torch import nn


def train(rank, world):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29572")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    layers = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda()
    model = nn.parallel.DistributedDataParallel(layers, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(64, 2048).cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, (2,), nprocs=2)
