"""A loop without a data loader, of more steps than anybody sees, that saves seldom."""

import sys

import torch
from torch import nn

model = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if "--resume" in sys.argv:
    model.load_state_dict(torch.load("out/model.pt", map_location="cpu"))
step = 0
while True:
    model(torch.randn(16, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 300 == 0:
        __import__("os").makedirs("out", exist_ok=True)
        torch.save(model.state_dict(), "out/model.pt")
