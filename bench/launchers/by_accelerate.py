# SPDX-License-Identifier: Apache-2.0
"""A loop of accelerate's own."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
data = torch.utils.data.TensorDataset(torch.randn(1024, 2048))
model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8)))
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()),
                                               torch.utils.data.DataLoader(data, batch_size=64))  # fmt: skip
for (x,) in loader:
    accelerator.backward(model(x).square().mean())
    optimizer.step()
    optimizer.zero_grad()
