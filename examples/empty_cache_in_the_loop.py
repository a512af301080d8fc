"""Trains ResNet-18 and calls gc.collect() and empty_cache() after every step.

Wrong: it frees nothing that the next step would not have used, and every step asks the driver for all of it again. It
fits, slowly.
"""

import gc

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(60):
    images = torch.rand(64, 3, 128, 128, device="cuda")
    labels = torch.randint(10, (64,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
    torch.cuda.empty_cache()  # <- the mistake
