"""Trains ResNet-50 on 96 pictures at a time and leaves half of the card to others.

Wrong: the program's own limit. It needs 8 GiB and allows itself 5.9 of a 12 GB card: it runs out in the first forward
pass.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

torch.cuda.set_per_process_memory_fraction(0.5)  # <- the mistake
model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(50):
    images = torch.rand(96, 3, 224, 224, device="cuda")
    labels = torch.randint(1000, (96,), device="cuda")
    loss = F.cross_entropy(model(images), labels)  # <- out of memory
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
