# SPDX-License-Identifier: Apache-2.0
"""Trains a few blocks."""

import torch
from blocks import Block


def train(layers=4, steps=3):
    model = torch.nn.Sequential(*(Block(1024) for _ in range(layers))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4096, 1024, device="cuda")).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    train()
