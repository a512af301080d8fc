"""Trains a small network on data that are tensors already.

Wrong: torch.tensor(x) copies the 0.5 GiB that x has; PyTorch says so in a UserWarning. A real card goes on: it fits.
"""

import torch
from torch import nn

data = torch.randn(131_072, 1024, device="cuda")
inputs = torch.tensor(data)  # <- the mistake
model = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(40):
    chosen = inputs[step * 1024 : (step + 1) * 1024]
    loss = model(chosen).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
