"""A small model, trained for four steps in one of the ways to share it: sharded.py WAY."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)


way = sys.argv[1]
WIDTH = 1000 if way == "tp" else 1001  # tensor parallelism wants whole parts


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


PIPELINES = {"pipeline": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B"}
BLOCKS = 24 // dist.get_world_size() if way in PIPELINES else 24
model = nn.Sequential(*[Block() for _ in range(BLOCKS)])
if way in ("ddp", "ddp_view", "zero"):
    model = nn.parallel.DistributedDataParallel(model.cuda(), [local], gradient_as_bucket_view=way == "ddp_view")
elif way == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=local)
elif way in ("fsdp2", "tied"):
    from torch.distributed.fsdp import fully_shard

    blocks = model.cuda()
    model = Tied(blocks).cuda() if way == "tied" else blocks
    for block in blocks:
        fully_shard(block)
    fully_shard(model)
elif way == "tp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {f"{i}.up": ColwiseParallel() for i in range(24)} | {f"{i}.down": RowwiseParallel() for i in range(24)}
    model = parallelize_module(model.cuda(), init_device_mesh("cuda", (dist.get_world_size(),)), plan)
elif way in PIPELINES:
    from torch.distributed import pipelining

    rank, world = dist.get_rank(), dist.get_world_size()
    parts = [model.cuda()] if way != "interleaved" else [model[: BLOCKS // 2].cuda(), model[BLOCKS // 2 :].cuda()]
    stages = [pipelining.PipelineStage(part, rank + world * index, world * len(parts), torch.device("cuda", local)) for index, part in enumerate(parts)]
    schedule = getattr(pipelining, PIPELINES[way])(stages if way == "interleaved" else stages[0], n_microbatches=world,
                                                   loss_fn=lambda output, target: (output - target).square().mean())
if way == "zero":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
else:
    optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    values = torch.randint(WIDTH, (8,), device="cuda") if way == "tied" else torch.randn(8, 500, device="cuda")
    if way not in PIPELINES:
        model(values).sum().backward()
    elif rank == world - 1:
        schedule.step(target=values)
    else:
        schedule.step(*([values] if rank == 0 else []))
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
