# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel and AdamW: to_fix.py; `spawn` starts its two ranks itself, else a launcher has."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn


def train(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    layers = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(16)))
    model = nn.parallel.DistributedDataParallel(layers.cuda(), device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=False)
    for _ in range(4):
        loss = model(torch.randn(64, 2048).cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("rank", rank, "is done")
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["spawn"]:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29541")
        torch.multiprocessing.spawn(train, (2,), nprocs=2)
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
