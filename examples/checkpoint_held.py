"""Trains a network of 650 million numbers, saves it, and goes on from what was saved.

Wrong: the loaded checkpoint lives as long as the training that follows, and torch.load() has put it onto the card. The optimizer
keeps its part; the model's part, 2.4 GiB, lies there for nothing. Training fits a 12 GB card, going on with it does not.
"""

import torch
from torch import nn


def build():
    model = nn.Sequential(*(nn.Linear(5120, 5120, bias=False) for _ in range(25))).cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(64, 5120, device="cuda")).square().mean()  # <- out of memory
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def begin():
    model, optimizer = build()
    train(model, optimizer, 1)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}, "last.pt")


def resume():
    model, optimizer = build()
    checkpoint = torch.load("last.pt")  # <- the mistake
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer, 4)


begin()
resume()
