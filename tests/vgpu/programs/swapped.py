"""Parameters that change places with others, as Module.to does it for tensors of several parts."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(1000, 1000), nn.Linear(1000, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step():
    model(torch.randn(8, 1000, device="cuda", dtype=model[0].weight.dtype)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
before = model[0].weight
torch.utils.swap_tensors(before, nn.Parameter(torch.randn(1000, 1000, device="cuda")))
torch.__future__.set_swap_module_params_on_conversion(True)
model.to(torch.float64)
assert model[0].weight is before and before.dtype == torch.float64
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    step()
print("swapped")
