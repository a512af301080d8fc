# %%
import torch
from torch import nn
net = nn.Conv2d(3, 16, 3, padding=1).cuda()
state = {"frames": []}
# %%
@torch.inference_mode()
def propagate(state, count):
    for _ in range(count):
        features = net(torch.randn(1, 3, 512, 512, device="cuda"))
        state["frames"].append(features)
        yield features.mean()
# %%
for score in propagate(state, 4):
    pass
# %%
for score in propagate(state, 4):
    pass
