"""accelerate's save_state and load_state; `card`: loaded where the model is (map_location="on_device")."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

resume = len(sys.argv) > 1
accelerator = Accelerator()
model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(6)))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
data = DataLoader(TensorDataset(torch.rand(64, 2048)), batch_size=16)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
if resume:
    accelerator.load_state("state", **({"map_location": "on_device"} if sys.argv[1] == "card" else {}))
for epoch in range(2):
    for (batch,) in data:
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        optimizer.zero_grad()
accelerator.save_state("state")
