# SPDX-License-Identifier: Apache-2.0
"""Gated linear attention of flash-linear-attention: Triton kernels with many configurations to choose from."""

import torch
from fla.layers import GatedLinearAttention

layer = GatedLinearAttention(hidden_size=512, num_heads=4).cuda().bfloat16()
optimizer = torch.optim.AdamW(layer.parameters())
for _ in range(3):
    output, *_ = layer(torch.zeros(2, 512, 512, device="cuda", dtype=torch.bfloat16))
    output.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
