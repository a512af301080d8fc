"""Broadcasts, a small one among four large ones, as a model's are. Rank 1 begins first and comes as far ahead of the root as it may."""

import pathlib
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
started = pathlib.Path("started")
large = torch.zeros(1 << 20, device="cuda")
small = [torch.tensor([float(number if rank == 0 else -1)], device="cuda") for number in range(100)]
dist.barrier()
if rank == 1:
    started.write_text("x")
while not started.exists():
    time.sleep(0.01)
for one in small:
    for _ in range(4):
        dist.broadcast(large, 0)
    dist.broadcast(one, 0)
assert [one.item() for one in small] == list(range(100))
print("all there")
dist.destroy_process_group()
