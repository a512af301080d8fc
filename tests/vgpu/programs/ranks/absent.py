"""What torch.distributed answers where not all ranks are run: absent.py [what a rank that is not run would have to say, or what is left out]."""

import os
import sys

import torch
import torch.distributed as dist

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("cpu:gloo,cuda:nccl")
rank, world = dist.get_rank(), dist.get_world_size()
last = world - 1
way = sys.argv[1] if len(sys.argv) > 1 else ""


def card(*values):
    return torch.tensor(values, device="cuda")


if way == "broadcast":
    dist.broadcast_object_list([None], src=2)
elif way == "receive":
    dist.recv(torch.zeros(1), src=2)

for device in ("cpu", "cuda"):
    one = torch.ones(3, dtype=torch.int64, device=device)
    dist.all_reduce(one)
    assert one.tolist() == [world] * 3, (device, one)
    most = torch.tensor([rank], device=device)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    assert most.tolist() == [last], (device, most)
    parts = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(world)]
    dist.all_gather(parts, torch.tensor([7], device=device))
    assert [int(part) for part in parts] == [7] * world, (device, parts)
    first = torch.tensor([rank + 5], device=device)
    dist.broadcast(first, 0)
    assert first.tolist() == [5], (device, first)
    dist.broadcast(first.fill_(rank), last)
    assert first.tolist() == [last], (device, first)
dist.barrier()
objects = [None] * world
dist.all_gather_object(objects, {"rank": rank, "words": "x" * (rank + 1)})
assert objects[0]["rank"] == 0 and objects[last]["rank"] == last and len(objects) == world, objects
assert all(one["rank"] <= place for place, one in enumerate(objects)), objects
on_cards = dist.new_group(backend="nccl")
dist.all_gather_object(objects, rank, group=on_cards)
assert objects[0] == 0 and objects[last] == last, objects
dist.gather_object({"rank": rank}, objects if rank == 0 else None, group=on_cards)
assert rank or (objects[last]["rank"] == last and objects[2]["rank"] in (0, 1, last)), objects
said = ["from the last"] if rank == last else [None]
dist.broadcast_object_list(said, src=last)
assert said == ["from the last"], said
halves = [dist.new_group(list(range(half * world // 2, (half + 1) * world // 2))) for half in range(2)]
own = halves[rank >= world // 2]
count = card(1)
dist.all_reduce(count, group=own)
assert int(count) == world // 2, count
count = torch.tensor([1])
dist.all_reduce(count, group=own)
assert int(count) == world // 2, count
alternate = [dist.new_group(list(range(first, world, 2))) for first in range(2)]
count = card(1)
dist.all_reduce(count, group=alternate[rank % 2])
assert int(count) == world // 2, count
beside = [torch.ones(4 << 20, device="cuda"), torch.zeros(4 << 20, device="cuda")]
steps = [dist.P2POp(dist.isend, beside[0], (rank + 1) % world), dist.P2POp(dist.irecv, beside[1], (rank - 1) % world)]
for work in dist.batch_isend_irecv(steps):
    work.wait()
torch.cuda.synchronize()
if rank == 0:
    dist.send(torch.ones(8, device="cuda"), 1)  # to one that is run, and to one that is not
    dist.send(torch.ones(8, device="cuda"), 2)
    dist.recv(torch.ones(8, device="cuda"), 2)
elif rank == 1:
    got = torch.zeros(8, device="cuda")
    dist.recv(got, 0)
    assert got.tolist() == [1] * 8, got
elif rank == last:
    dist.recv(torch.ones(8, device="cuda"), 2)
    dist.send(torch.ones(8, device="cuda"), 2)
torch.cuda.synchronize()
print(f"rank {rank} of {world} got all")
