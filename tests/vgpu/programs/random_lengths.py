# SPDX-License-Identifier: Apache-2.0
"""Sequences of random lengths, by far the longest one in step 90. Arguments: loader or loop, and how many lengths."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

form, kinds = sys.argv[1], int(sys.argv[2])
lengths = (64 * (1 + torch.randint(kinds, (400,), generator=torch.Generator().manual_seed(3)))).tolist()
lengths[89] = 1 << 16


class Sequences(Dataset):
    def __len__(self):
        return len(lengths)

    def __getitem__(self, index):
        return torch.zeros(lengths[index], 256)


def sequences():
    if form == "loader":
        yield from DataLoader(Sequences())
    else:
        for _ in range(100):
            for length in lengths:
                yield torch.zeros(1, length, 256)


net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for x in sequences():
    optimizer.zero_grad()
    net(x.cuda()).sum().backward()
    optimizer.step()
