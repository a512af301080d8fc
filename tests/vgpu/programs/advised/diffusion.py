# guided diffusion's manner: DistributedDataParallel on one card, checkpointing by a Function of its own, an average of the
# weights beside the model
import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, length, *arguments):
        ctx.run, ctx.inputs, ctx.parameters = run, list(arguments[:length]), list(arguments[length:])
        with torch.no_grad():
            return run(*ctx.inputs)

    @staticmethod
    def backward(ctx, *gradients):
        inputs = [tensor.detach().requires_grad_(True) for tensor in ctx.inputs]
        with torch.enable_grad():
            output = ctx.run(*[tensor.view_as(tensor) for tensor in inputs])
        return (None, None, *torch.autograd.grad(output, inputs + ctx.parameters, gradients, allow_unused=True))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4)))

    def forward(self, x):
        return Checkpoint.apply(self.layers, 1, x, *self.layers.parameters())


os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=os.environ.get("MASTER_PORT", "29511"), RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl")
model = torch.nn.Sequential(*(Block() for _ in range(20))).cuda()
average = copy.deepcopy(list(model.parameters()))
model = DistributedDataParallel(model, device_ids=[0])
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(16384, 1024, device="cuda", requires_grad=True)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    for one, other in zip(average, model.parameters()):
        one.detach().mul_(.99).add_(other, alpha=.01)
