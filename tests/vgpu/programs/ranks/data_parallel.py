"""A small model on all cards of one process, trained for four steps; its gradients stay between steps: data_parallel.py."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(500, 1001), nn.Linear(1001, 500)

    def forward(self, values):
        return self.down(self.up(values).relu())


model = nn.DataParallel(nn.Sequential(*[Block() for _ in range(24)]).cuda())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    model(torch.randn(16, 500, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
