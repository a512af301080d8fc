# SPDX-License-Identifier: Apache-2.0
"""A loop that takes two batches of 32 for an update, out of a loader that never ends. Prints the samples of each update."""

import torch
from torch.utils.data import DataLoader, Dataset

taken = [0, 0]  # samples so far, and at the last update


class Zeros(Dataset):
    def __len__(self):
        return 1 << 17

    def __getitem__(self, index):
        taken[0] += 1
        return torch.zeros(64)


def for_ever(loader):
    while True:
        yield from loader


def tell(*_):
    print("update of", taken[0] - taken[1], "samples", flush=True)
    taken[1] = taken[0]


model = torch.nn.Sequential(torch.nn.Linear(64, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 64)).cuda()
optimizer = torch.optim.Adam(model.parameters())
optimizer.register_step_post_hook(tell)
batches = for_ever(DataLoader(Zeros(), batch_size=32))
for update in range(12):
    for _ in range(2):
        (model(next(batches).cuda()).mean() / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
