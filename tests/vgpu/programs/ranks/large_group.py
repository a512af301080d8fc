"""A group of more sends and receives than a pair of ranks has room for, from each rank to the next one. NCCL starts all of a group at once."""

import torch
import torch.distributed as dist

MANY = 1200
dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
given = [torch.tensor([float(1000 * rank + number)], device="cuda") for number in range(MANY)]
got = [torch.empty(1, device="cuda") for _ in given]
after, before = (rank + 1) % ranks, (rank - 1) % ranks
work = [dist.P2POp(dist.isend, one, after) for one in given] + [dist.P2POp(dist.irecv, one, before) for one in got]
for one in dist.batch_isend_irecv(work):
    one.wait()
assert [one.item() for one in got] == [1000 * before + number for number in range(MANY)]
print("all there")
dist.destroy_process_group()
