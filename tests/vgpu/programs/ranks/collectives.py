"""Every collective, with values: each rank knows what it has to get. Ends with a line for each rank."""

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
everybody = list(range(world))


def on_card(values, **options):
    return torch.tensor(values, device="cuda", **options)


def check(what, found, wanted):
    assert found == wanted, f"rank {rank}, {what}: {found} instead of {wanted}"


for kind in (torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
    number = on_card([rank + 1], dtype=kind)
    dist.all_reduce(number)
    check(f"sum of {kind}", number.item(), world * (world + 1) // 2)
for operator, wanted in ((dist.ReduceOp.MAX, world - 1.0), (dist.ReduceOp.MIN, 0.0), (dist.ReduceOp.AVG, (world - 1) / 2),
                         (dist.ReduceOp.PRODUCT, 0.0)):
    number = on_card([float(rank)])
    dist.all_reduce(number, op=operator)
    check(f"{operator}", number.item(), wanted)
number = on_card([rank + 1.0])
dist.all_reduce(number, op=dist._make_nccl_premul_sum(2.0))
check("sum of doubles", number.item(), float(world * (world + 1)))

number = on_card([rank])
dist.broadcast(number, 1)
check("broadcast", number.item(), 1)
parts = [torch.zeros(2, dtype=torch.long, device="cuda") for _ in everybody]
dist.all_gather(parts, on_card([rank, 7]))
check("all_gather", [part.tolist() for part in parts], [[other, 7] for other in everybody])
whole = torch.zeros(world, device="cuda")
dist.all_gather_into_tensor(whole, on_card([float(rank)]))
check("all_gather_into_tensor", whole.tolist(), [float(other) for other in everybody])
part = torch.zeros(1, device="cuda")
dist.reduce_scatter_tensor(part, on_card([float(other) for other in everybody]))
check("reduce_scatter_tensor", part.item(), float(rank * world))
whole = torch.zeros(world, device="cuda")
dist.all_to_all_single(whole, on_card([other + 10.0 * rank for other in everybody]))
check("all_to_all_single", whole.tolist(), [10.0 * other + rank for other in everybody])

objects = [None] * world
dist.all_gather_object(objects, {"rank": rank, "text": "y" * (100 * rank)})
check("all_gather_object", [(item["rank"], len(item["text"])) for item in objects], [(r, 100 * r) for r in everybody])
objects = [("hello", 5), [1, 2]] if rank == 0 else [None, None]
dist.broadcast_object_list(objects)
check("broadcast_object_list", objects, [("hello", 5), [1, 2]])
objects = [None] * world if rank == 0 else None
dist.gather_object(rank * 3, objects)
check("gather_object", objects, [3 * other for other in everybody] if rank == 0 else None)
objects = [None]
dist.scatter_object_list(objects, [f"for {other}" for other in everybody] if rank == 0 else None)
check("scatter_object_list", objects, [f"for {rank}"])

number = torch.zeros(1, device="cuda")
both = [dist.P2POp(dist.irecv, number, (rank - 1) % world),
        dist.P2POp(dist.isend, on_card([float(rank)]), (rank + 1) % world)]
for work in dist.batch_isend_irecv(both):
    work.wait()
check("a ring of sends", number.item(), float((rank - 1) % world))

two = dist.new_group([0, 1])
if rank < 2:
    number = on_card([rank + 1])
    dist.all_reduce(number, group=two)
    check("a group of two", number.item(), 3)
number = torch.tensor([rank + 1.0])
dist.all_reduce(number, group=dist.new_group(backend="gloo"))
check("gloo", number.item(), world * (world + 1) / 2)
mesh = init_device_mesh("cuda", (world // 2, 2)) if world > 2 else init_device_mesh("cuda", (world,))
for dimension in range(mesh.ndim):
    number = on_card([1])
    dist.all_reduce(number, group=mesh.get_group(dimension))
    check(f"dimension {dimension} of a mesh", number.item(), mesh.size(dimension))
large = torch.randn(1 << 20, device="cuda")
dist.all_reduce(large)
torch.cuda.synchronize()
dist.barrier()
print(f"rank {rank} got all", flush=True)
dist.destroy_process_group()
