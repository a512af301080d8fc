"""Encodes texts, the short ones first, and keeps the result of each in half precision.

Wrong: the memory falls to pieces. Every text is longer than all before, so it fits no hole that they left. A 12 GB card
runs out with gigabytes free; with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True it fits.
"""

import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
kept = []
with torch.no_grad():
    for length in range(40_000, 130_000, 2_000):
        states = torch.randn(length, 1024, device="cuda")
        states = encoder(states)  # <- out of memory
        kept.append(states.half())
print(sum(states.numel() for states in kept), "numbers")
