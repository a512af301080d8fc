"""Two ranks that do not come to a good end: ending.py WAY. What each does wrong stands behind its name."""

import os
import signal
import sys

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, way = dist.get_rank(), sys.argv[1]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
values = torch.randn((1 << 20) + (rank if way == "shapes" else 0), device="cuda")
if way == "skip" and rank == 1:
    dist.broadcast(values[:4], 0)
else:
    dist.all_reduce(values)
torch.cuda.synchronize()  # waits
if way == "exits" and rank == 1:
    os._exit(0)
if way == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if way == "memory" and rank == 1:
    torch.empty(30 << 30, device="cuda")
dist.all_reduce(values)
torch.cuda.synchronize()  # waits, too
