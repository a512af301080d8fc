"""Trains ResNet-18 without a graph, to save its memory.

Wrong: what was computed under no_grad() has no graph to go back through. backward() raises a RuntimeError, on any card.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    images = torch.rand(32, 3, 64, 64, device="cuda")
    labels = torch.randint(10, (32,), device="cuda")
    with torch.no_grad():
        loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()  # <- the mistake
    optimizer.step()
