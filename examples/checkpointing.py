"""Trains a transformer of 24 layers; with --checkpoint every layer is computed again in backward.

Wrong: without --checkpoint the activations of 24 layers do not fit a 12 GB card; with it they do.
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", action="store_true")
options = parser.parse_args()


class Transformer(nn.Module):
    def __init__(self, width=1024, layers=24):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
            for _ in range(layers)
        )

    def forward(self, x):
        for layer in self.layers:
            if options.checkpoint:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)  # <- out of memory
        return x


model = Transformer().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(200):
    series = torch.randn(16, 512, 1024, device="cuda")
    prediction = model(series[:, :-1])
    loss = nn.functional.mse_loss(prediction, series[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
