"""A small model, trained for four steps in one of the ways to share it: sharded.py WAY [tied] [even] [short]."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)


way, tied = sys.argv[1], "tied" in sys.argv[2:]
WIDTH = 1000 if way in ("tp", "tp2") or "even" in sys.argv[2:] else 1001  # tensor parallelism wants whole parts
BLOCKS = 8 if "short" in sys.argv[2:] else 24
rank, world = dist.get_rank(), dist.get_world_size()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(500, WIDTH), nn.Linear(WIDTH, 500)

    def forward(self, values):
        return self.down(self.up(values).relu())


class Tied(nn.Module):
    """The blocks between an embedding and an output that is the same matrix."""

    def __init__(self, blocks):
        super().__init__()
        self.embedding, self.blocks, self.output = nn.Embedding(WIDTH, 500), blocks, nn.Linear(500, WIDTH, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens):
        return self.output(self.blocks(self.embedding(tokens)))


# "ends": the first stage has an embedding, the last one an output. "pipeline2": two stages, each of them sharded over the ranks that share it.
PIPELINES = {"pipeline": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B", "ends": "ScheduleGPipe", "pipeline2": "ScheduleGPipe"}
STAGES = 2 if way == "pipeline2" else world
stage = rank * STAGES // world
first, last = stage == 0, stage == STAGES - 1
OWN_BLOCKS = BLOCKS // STAGES if way in PIPELINES else BLOCKS
model = nn.Sequential(*[Block() for _ in range(OWN_BLOCKS)])
if way == "ends":
    model = nn.Sequential(*[nn.Embedding(WIDTH, 500)] * first, *model, *[nn.Linear(500, WIDTH, bias=False)] * last)
elif tied and way != "fsdp2":
    model = Tied(model)
if way in ("ddp", "ddp_view", "zero"):
    model = nn.parallel.DistributedDataParallel(model.cuda(), [local], gradient_as_bucket_view=way == "ddp_view")
elif way == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=local)
elif way in ("fsdp2", "hybrid"):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("copies", "parts")) if way == "hybrid" else None
    blocks = model.cuda()
    model = Tied(blocks).cuda() if tied else blocks
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
elif way in ("tp", "tp2"):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (world // 2, 2) if way == "tp2" else (1, world), mesh_dim_names=("data", "tensor"))
    plan = {f"{i}.up": ColwiseParallel() for i in range(BLOCKS)} | {f"{i}.down": RowwiseParallel() for i in range(BLOCKS)}
    model = parallelize_module(model.cuda(), mesh["tensor"], plan)
    if way == "tp2" and world > 2:
        from torch.distributed.fsdp import fully_shard

        for block in model:
            fully_shard(block, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
elif way in PIPELINES:
    from torch.distributed import pipelining

    parts = [model.cuda()] if way != "interleaved" else [model[: OWN_BLOCKS // 2].cuda(), model[OWN_BLOCKS // 2 :].cuda()]
    group = None
    if way == "pipeline2" and world > 2:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cuda", (2, world // 2), mesh_dim_names=("stage", "data"))
        group = mesh["stage"].get_group()
        fully_shard(model, mesh=mesh["data"])
    stages = [pipelining.PipelineStage(part, stage + STAGES * index, STAGES * len(parts), torch.device("cuda", local), group=group) for index, part in enumerate(parts)]
    schedule = getattr(pipelining, PIPELINES[way])(stages if way == "interleaved" else stages[0], n_microbatches=world,
                                                   loss_fn=nn.functional.cross_entropy if way == "ends" else lambda output, target: (output - target).square().mean())
if way == "zero":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
else:
    optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    values = torch.randint(WIDTH, (8,), device="cuda") if tied or way == "ends" else torch.randn(8, 500, device="cuda")
    if way not in PIPELINES:
        model(values).sum().backward()
    elif last:
        schedule.step(target=values)
    else:
        schedule.step(*([values] if first else []))
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
