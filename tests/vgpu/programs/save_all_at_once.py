# SPDX-License-Identifier: Apache-2.0
"""Fits in training. Saves, after the last epoch, all parameters as one tensor of float32: the copy does not fit."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(16)]).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(80000, 4096)), batch_size=8, shuffle=True)
for epoch in range(3):
    for x, in loader:
        optimizer.zero_grad()
        net(x.to("cuda", torch.bfloat16)).sum().backward()
        optimizer.step()
weights = torch.cat([parameter.float().flatten() for parameter in net.parameters()])  # out of memory
torch.save(weights, "weights.pt")
