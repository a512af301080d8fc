# SPDX-License-Identifier: Apache-2.0
"""Trains on made data that its loader's workers hand over: loader_memory.py WORKERS PREFETCH [pin] [plain]. A batch has 32 MiB.

plain: on the CPU, as long as a card would take for a batch (bench/host_memory.py)."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WORKERS, PREFETCH = int(sys.argv[1]), int(sys.argv[2])


class Pictures(Dataset):
    """In the parent's memory, which workers share."""

    def __init__(self):
        self.data = torch.ones(16, 1 << 20)  # 64 MiB

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
PLAIN = "plain" in sys.argv
device = "cpu" if PLAIN else "cuda"
model = torch.nn.Linear(1024, 64).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for number, batch in enumerate(loader):
    loss = model(batch.to(device, non_blocking=True)[:, :1024]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if PLAIN:
        time.sleep(0.05)
        if number == 30:
            break
