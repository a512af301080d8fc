# SPDX-License-Identifier: Apache-2.0
"""Trains on a data set of torchvision. Arguments: its name, and the folder that it lies in."""

import sys

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader
from torchvision.transforms import ToTensor

name, root = sys.argv[1:]
train, test = (getattr(torchvision.datasets, name)(root, train, ToTensor(), download=True) for train in (True, False))
print(len(train), len(test), tuple(train[0][0].shape), train[11][1], len(train.classes), len(train.class_to_idx))
net = nn.Sequential(nn.Conv2d(train[0][0].shape[0], 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(),
                    nn.Linear(4096, len(train.classes))).cuda()  # fmt: skip
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(2):
    for x, y in DataLoader(train, batch_size=256, shuffle=True):
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        for x, y in DataLoader(test, batch_size=250):
            net(x.cuda())
