"""Trains ResNet-50, keeps the losses for a plot, and silences an error of autograd with retain_graph=True.

Wrong: a retained graph lives as long as its loss, 2.7 GiB a step; a 12 GB card runs out in the forward pass of step 5.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for step in range(100):
    images = torch.rand(32, 3, 224, 224, device="cuda")
    labels = torch.randint(1000, (32,), device="cuda")
    loss = F.cross_entropy(model(images), labels)  # <- out of memory
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # <- the mistake
    optimizer.step()
    losses.append(loss)  # <- the mistake
