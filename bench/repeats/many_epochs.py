# SPDX-License-Identifier: Apache-2.0
"""Forty epochs of a small training with a loader."""

import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(4096, 256)), batch_size=16)
for epoch in range(40):
    for (rows,) in loader:
        model(rows.cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
print("forty epochs")
