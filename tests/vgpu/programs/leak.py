# SPDX-License-Identifier: Apache-2.0
"""Keeps 1 MiB a step. Argument: loop, loader (one epoch of 500 batches), epochs (40 of 500 batches) or evaluation (3,000 batches, and no
step). Few rows are read for a batch: that is Python's work, and none of the card's."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

form = sys.argv[1]
net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
loader = DataLoader(TensorDataset(torch.zeros(4000, 512)), batch_size=8)
kept = []


def update(x):
    optimizer.zero_grad()
    out = net(x.cuda().repeat(512 // len(x), 1))
    out.sum().backward()
    optimizer.step()
    kept.append(out.detach())


if form == "evaluation":
    net.eval()
    with torch.no_grad():
        for x, in DataLoader(TensorDataset(torch.zeros(3000, 512)), batch_size=1):
            kept.append(net(x.cuda().expand(512, -1)))
    sys.exit()
if form == "loop":
    while True:
        update(torch.zeros(512, 512))
for epoch in range(40 if form == "epochs" else 1):
    for x, in loader:
        update(x)
