# SPDX-License-Identifier: Apache-2.0
"""Super-resolution: training, then a test whose figure is ten times the logarithm of one by the error."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)).cuda()
optimizer = torch.optim.Adam(net.parameters())
loader = DataLoader(TensorDataset(torch.rand(64, 1, 32, 32)), batch_size=4)
for epoch in range(3):
    for (picture,) in loader:
        picture = picture.cuda()
        optimizer.zero_grad()
        nn.functional.mse_loss(net(picture), picture).backward()
        optimizer.step()
    with torch.no_grad():
        total = 0
        for (picture,) in loader:
            picture = picture.cuda()
            total += 10 * math.log10(1 / nn.functional.mse_loss(net(picture), picture).item())
    print("average", total / len(loader))
print("tested")
