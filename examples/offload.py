"""Trains a transformer of 24 layers; with --offload the activations wait for backward in the memory of the host.

Wrong: without --offload the activations do not fit a 12 GB card; with it they do, for the price of the copying.
"""

import argparse
import contextlib

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--offload", action="store_true")
options = parser.parse_args()

layers = [
    nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, activation="gelu", batch_first=True) for _ in range(24)
]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(30):
    series = torch.randn(16, 512, 1024, device="cuda")
    offload = torch.autograd.graph.save_on_cpu() if options.offload else contextlib.nullcontext()
    with offload:
        prediction = model(series[:, :-1])  # <- out of memory
    loss = nn.functional.mse_loss(prediction, series[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
