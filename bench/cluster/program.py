# SPDX-License-Identifier: Apache-2.0
"""A small transformer, trained for a few steps: what the grid of bench/cluster is made over.

    program.py --batch N --length N
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--length", type=int, required=True)
options = parser.parse_args()

layer = nn.TransformerEncoderLayer(256, 4, batch_first=True)
model = nn.Sequential(nn.Embedding(8192, 256), nn.TransformerEncoder(layer, 2), nn.Linear(256, 8192)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    tokens = torch.randint(8192, (options.batch, options.length), device="cuda")
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
