"""Trains for five steps."""

import torch

layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(5):
    layer(torch.randn(256, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("five steps")
