# SPDX-License-Identifier: Apache-2.0
"""torch.compile with max-autotune-no-cudagraphs: minutes of compiling before the first step."""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024), torch.nn.GELU()] * 2).cuda()
compiled = torch.compile(model, mode="max-autotune-no-cudagraphs")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    compiled(torch.zeros(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
