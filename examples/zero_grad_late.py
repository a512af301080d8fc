"""Trains a wide transformer of a billion parameters; the gradients are zeroed right before backward.

Wrong: those of the last step live through the forward pass, 3.8 GiB. A 12 GB card runs out in the second forward pass;
zeroed after the update (--early) it fits.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--early", action="store_true")
options = parser.parse_args()

layers = [
    nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0.0, activation="gelu", batch_first=True) for _ in range(20)
]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

for step in range(100):
    series = torch.randn(4, 512, 2048, device="cuda")
    prediction = model(series)  # <- out of memory
    loss = nn.functional.mse_loss(prediction[:, :-1], series[:, 1:])
    if not options.early:
        optimizer.zero_grad()  # <- the mistake
    loss.backward()
    optimizer.step()
    if options.early:
        optimizer.zero_grad()
