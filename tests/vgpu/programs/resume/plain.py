"""Trains, or goes on from last.pt: `held` and `cpu` keep what they loaded, `let_go` does not; `twice` has its optimizer make a copy."""

import copy
import sys

import torch
from torch import nn

how = sys.argv[1]
model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
checkpoint = None
if how != "train":
    checkpoint = torch.load("last.pt", map_location="cpu" if how == "cpu" else None)
    model.load_state_dict({name.replace("module.", ""): tensor for name, tensor in checkpoint["model"].items()})
    optimizer.load_state_dict(copy.deepcopy(checkpoint["optimizer"]) if how == "twice" else checkpoint["optimizer"])
    if how == "let_go":
        del checkpoint
for _ in range(3):
    model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
if how == "train":
    weights = {"module." + name: tensor for name, tensor in model.state_dict().items()}
    torch.save({"model": weights, "optimizer": optimizer.state_dict(), "epoch": 1}, "last.pt")
