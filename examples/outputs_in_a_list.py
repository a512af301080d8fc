"""Trains a classifier with 1024 classes and keeps all predictions for the figures at the end of the epoch.

Wrong: the list holds 1 MiB of logits on the card for every step. A 12 GB card is full after some 11,700 of 40,000
steps.
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
predictions = []

for step in range(40_000):
    features = torch.randn(256, 512, device="cuda")
    labels = torch.randint(1024, (256,), device="cuda")
    logits = model(features)  # <- grows
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    predictions.append(logits)  # <- the mistake

print("right", sum((logits.argmax(1) == labels).sum() for logits in predictions).item())
