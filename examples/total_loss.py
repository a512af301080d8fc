"""Trains ResNet-18 and adds up the loss for the mean of the epoch.

Wrong: `total += loss` keeps every step's graph, but only its shell: backward has freed the tensors. The card loses
nothing, the host a little.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
total = 0
for step in range(60):
    images = torch.rand(32, 3, 64, 64, device="cuda")
    labels = torch.randint(10, (32,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # <- the mistake
print("mean loss", total.item() / 60)
