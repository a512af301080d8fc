# SPDX-License-Identifier: Apache-2.0
"""Two ranks in one of the ways to share a model: ways_of_ranks.py WAY.

spawn starts its ranks by itself (torch.multiprocessing.spawn); the others run under torchrun. pipeline is 1F1B with the stage's
shapes sent from rank to rank by PyTorch; gloo is DDP over gloo with CUDA tensors, and each rank prints what its card holds.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

way = sys.argv[1]
WIDTH, LAYERS = 1024, 8


def held(rank, moment):
    free, total = torch.cuda.mem_get_info(rank)
    print(f"rank {rank} {moment}: {total - free >> 20} MiB", flush=True)


def train(model):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(16, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def layers():
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def pipeline(rank, count):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    part = nn.Sequential(*list(layers())[rank * LAYERS // count:(rank + 1) * LAYERS // count]).cuda()
    schedule = Schedule1F1B(PipelineStage(part, rank, count, torch.device("cuda", rank)), n_microbatches=4,
                            loss_fn=lambda output, target: (output - target).square().mean())  # fmt: skip
    optimizer = torch.optim.AdamW(part.parameters())
    for _ in range(4):
        data = torch.randn(32, WIDTH, device="cuda")
        schedule.step(*([data] if rank == 0 else []), **({"target": data, "losses": []} if rank == count - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def main(rank, count):
    torch.cuda.set_device(rank)
    if way == "gloo":
        held(rank, "before")
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(1 << 20, device="cuda"))
        held(rank, "after the first all_reduce")
    else:
        dist.init_process_group("nccl", rank=rank, world_size=count)
    if way == "pipeline":
        pipeline(rank, count)
    else:
        train(nn.parallel.DistributedDataParallel(layers().cuda(), device_ids=[rank]))
    os.write(1, f"rank {rank} trained\n".encode())  # in one piece: the ranks share the output
    dist.destroy_process_group()


def spawned(rank, count):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29641")
    main(rank, count)


if __name__ == "__main__":
    if way == "spawn":
        torch.multiprocessing.spawn(spawned, (2,), nprocs=2)
    else:
        main(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
