"""Trains a transformer of 40 layers, half of them on each of two cards (tonnage run --gpus 2); with --one on one.

Wrong: with --one. The model and its optimizer need 7.5 GiB, the activations 6; two 12 GB cards hold them, one runs
out in the forward pass.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--one", action="store_true")
options = parser.parse_args()
first, second = "cuda:0", "cuda:0" if options.one else "cuda:1"


def half(device):
    layers = [nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True) for _ in range(20)]
    return nn.Sequential(*layers).to(device)


front, back = half(first), half(second)
optimizer = torch.optim.AdamW([*front.parameters(), *back.parameters()], lr=1e-4)
for step in range(50):
    series = torch.randn(8, 512, 1024, device=first)
    middle = front(series[:, :-1])  # <- out of memory
    prediction = back(middle.to(second))  # <- out of memory
    loss = nn.functional.mse_loss(prediction, series[:, 1:].to(second))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
