"""Trains ResNet-18 on 8 batches of pictures that stay in pinned memory of the host.

Wrong: pinned memory comes in powers of two, so each batch of 36 MiB takes 64. A 12 GB card does not notice: it fits.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

batches = [torch.zeros(64, 3, 224, 224).pin_memory() for _ in range(8)]  # <- the mistake
model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(60):
    images = batches[step % 8].cuda(non_blocking=True)
    labels = torch.randint(10, (64,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
