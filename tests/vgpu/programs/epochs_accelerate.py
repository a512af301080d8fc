# SPDX-License-Identifier: Apache-2.0
"""accelerate over three epochs of 10,000 batches, with gradient accumulation over as many as the argument says."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=int(sys.argv[1]))
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
optimizer = torch.optim.AdamW(net.parameters())
data = TensorDataset(torch.zeros(80000, 256))
net, optimizer, train, valid = accelerator.prepare(
    net, optimizer, DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8))
for epoch in range(3):
    updates = 0
    for x, in train:
        with accelerator.accumulate(net):
            accelerator.backward(net(x).sum())
            optimizer.step()
            optimizer.zero_grad()
            updates += accelerator.sync_gradients
    outputs = []
    for x, in valid:
        with torch.no_grad():
            outputs.append(accelerator.gather_for_metrics(net(x)))
    print("epoch", epoch, "updated", updates > 0, "evaluated", torch.cat(outputs).shape[0] > 0)
accelerator.save_state("state")
print("saved")
