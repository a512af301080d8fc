# SPDX-License-Identifier: Apache-2.0
"""A training that names its device by torch.accelerator, and the CPU where there is none."""

import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    data = torch.ones(8192, 2048, device=device)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
