# SPDX-License-Identifier: Apache-2.0
"""FlexAttention, compiled, with a block mask; and torch.export of a module."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda().eval()
exported = torch.export.export(layer, (torch.zeros(2, 64, device="cuda"),))
print("exported", tuple(exported.module()(torch.zeros(2, 64, device="cuda")).shape), flush=True)


def near(batch, head, query, key):
    return (query >= key) & (query - key < 128)


mask = create_block_mask(near, None, None, 1024, 1024, device="cuda")
attend = torch.compile(flex_attention)
project = torch.nn.Linear(64, 64, device="cuda", dtype=torch.bfloat16)
optimizer = torch.optim.SGD(project.parameters(), lr=0.1)
for _ in range(3):
    values = project(torch.zeros(2, 4, 1024, 64, device="cuda", dtype=torch.bfloat16))
    attend(values, values, values, block_mask=mask).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
