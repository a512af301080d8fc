# SPDX-License-Identifier: Apache-2.0
"""Fits in training. Evaluates after every second epoch of 10,000 batches, all crops of an image at once: that does not."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CROPS = 1 << 16


def evaluate(net, loader):
    net.eval()
    correct = 0
    with torch.no_grad():
        for images, in loader:
            crops = images.cuda().repeat(CROPS, 1)
            correct += net(crops).shape[0]  # out of memory
    net.train()
    return correct / len(loader)


def main():
    net = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    data = TensorDataset(torch.zeros(80000, 64))
    train, valid = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
    for epoch in range(1, 11):
        for images, in train:
            optimizer.zero_grad()
            net(images.cuda()).sum().backward()
            optimizer.step()
        if epoch % 2 == 0:
            print(epoch, evaluate(net, valid))


main()
