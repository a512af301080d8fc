# SPDX-License-Identifier: Apache-2.0
"""Trains one layer of attention whose scores are whole, so that memory grows with the batch and with the square of the length."""
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--length", type=int, default=512)
parser.add_argument("--width", type=int, default=256)
options = parser.parse_args()

if options.length > 8192:
    raise ValueError(f"a length of {options.length} is more than there are positions")
layer = torch.nn.Linear(options.width, 3 * options.width).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(2):
    x = torch.randn(options.batch, options.length, options.width, device="cuda")
    q, k, v = layer(x).chunk(3, dim=-1)
    scores = (q @ k.transpose(1, 2) / options.width**0.5).softmax(dim=-1)
    loss = (scores @ v).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
