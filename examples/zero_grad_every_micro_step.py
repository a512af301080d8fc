"""Trains ResNet-18 with an effective batch of 256, 32 pictures at a time.

Wrong: zero_grad() in every micro-step throws the gradients of seven out of eight away. A real card says nothing: it
fits.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

ACCUMULATE = 8
model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for step in range(160):
    images = torch.rand(32, 3, 64, 64, device="cuda")
    labels = torch.randint(10, (32,), device="cuda")
    loss = F.cross_entropy(model(images), labels) / ACCUMULATE
    optimizer.zero_grad()  # <- the mistake
    loss.backward()
    if (step + 1) % ACCUMULATE == 0:
        optimizer.step()
