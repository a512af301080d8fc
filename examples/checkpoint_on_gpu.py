"""Answers with a network of 1.7 billion numbers whose weights lie in a file.

Wrong: the file is loaded onto the card, 6.3 GiB beside the network of the same size that is there already. load_state_dict() would
copy from the CPU just as well.
"""

import torch
from torch import nn


def build():
    return nn.Sequential(*(nn.Linear(8192, 8192, bias=False) for _ in range(25)))


torch.save(build().state_dict(), "weights.pt")  # as if somebody had trained it

model = build().cuda()
weights = torch.load("weights.pt", map_location="cuda")  # <- out of memory
model.load_state_dict(weights)

with torch.no_grad():
    print(model(torch.randn(8, 8192, device="cuda")).shape)
