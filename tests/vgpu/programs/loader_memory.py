# SPDX-License-Identifier: Apache-2.0
"""Trains on made data that its loader's workers hand over: loader_memory.py WORKERS PREFETCH [pin]. A batch has 32 MiB."""

import gc
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WORKERS, PREFETCH = int(sys.argv[1]), int(sys.argv[2])


class Pictures(Dataset):
    """In the parent's memory, which workers share."""

    def __init__(self):
        self.data = torch.rand(16, 1 << 20)  # 64 MiB

    def __len__(self):
        return 800

    def __getitem__(self, index):
        return self.data[index % len(self.data)]


loader = DataLoader(
    Pictures(),
    batch_size=8,
    num_workers=WORKERS,
    prefetch_factor=PREFETCH,
    pin_memory="pin" in sys.argv,
)
model = torch.nn.Linear(1024, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
gc.collect()  # what imports have left would be freed here, and stay in workers, at a moment that differs (0036-hosts.md)
for batch in loader:
    loss = model(batch.cuda(non_blocking=True)[:, :1024]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
