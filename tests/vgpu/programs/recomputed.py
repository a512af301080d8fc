# SPDX-License-Identifier: Apache-2.0
"""recomputed.py none|reentrant|full|selective: eight blocks of two matrices, checkpointed in a way of PyTorch's."""

import functools
import sys

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

SAMPLES, WIDTH, BLOCKS = 16384, 512, 8


def policy(context, operation, *args, **kwargs):
    products = torch.ops.aten.mm.default, torch.ops.aten.addmm.default
    return CheckpointPolicy.MUST_SAVE if operation in products else CheckpointPolicy.PREFER_RECOMPUTE


WAYS = {
    "none": lambda block, x: block(x),
    "reentrant": lambda block, x: checkpoint(block, x, use_reentrant=True),
    "full": lambda block, x: checkpoint(block, x, use_reentrant=False),
    "selective": lambda block, x: checkpoint(
        block, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy)),
}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x):
        for block in self.blocks:
            x = WAYS[sys.argv[1]](block, x)
        return x


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x = torch.randn(SAMPLES, WIDTH, device="cuda", requires_grad=sys.argv[1] == "reentrant")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
