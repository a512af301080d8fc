"""One rank puts operations on its stream long before the other one: far_ahead.py sends | receives | collectives. On cards the host goes on."""

import pathlib
import sys
import time

import torch
import torch.distributed as dist

MANY = 200
dist.init_process_group("nccl")
rank, way = dist.get_rank(), sys.argv[1]
torch.cuda.set_device(rank)
small = [torch.tensor([float(number if rank == 0 else -1)], device="cuda") for number in range(MANY)]
large = torch.zeros(1 << 20, device="cuda")
ahead, first = pathlib.Path("ahead"), 1 if way == "receives" else 0


def exchange(tensor):
    if way == "collectives":
        return [dist.all_reduce(tensor, async_op=True)]
    return [(dist.isend if rank == 0 else dist.irecv)(tensor, 1 - rank)]


def wait_for(path):
    for _ in range(2000):
        if path.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(f"the other rank's host did not come to {path}")


for work in exchange(large):  # the communicator, and its connection
    work.wait()
torch.cuda.synchronize()
if rank != first:
    wait_for(ahead)
works = [work for one in small for tensor in (one, large) for work in exchange(tensor)]
if rank == first:
    ahead.write_text("x")
for work in works:
    work.wait()
wanted = [number + (-1 if way == "collectives" else 0) for number in range(MANY)]
assert way != "collectives" and rank == 0 or [one.item() for one in small] == wanted, [one.item() for one in small]
print("all there")
dist.destroy_process_group()
