# %%
import torch
from torch import nn
# %%
def train(model, optimizer):
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
# %%
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
# %%
optimizer = torch.optim.Adam(model.parameters())
# %%
train(model, optimizer)
