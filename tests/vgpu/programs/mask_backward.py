"""Backward of a selection: autograd reads the count of what was selected on a thread that has no frame of Python's."""

import torch

layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(5):
    y = layer(torch.randn(256, 64, device="cuda"))
    mask = torch.randn(256, device="cuda").sigmoid() > 0.5
    y[mask].sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("five steps")
