"""Trains ResNet-50 on 64 pictures at a time, on a card that others use, too (tonnage run --other 7GiB).

Wrong: somebody else holds 7 GiB. Alone it needs 6 GiB and fits a 12 GB card; beside them it runs out in the first
forward pass.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

free, total = torch.cuda.mem_get_info()
print(f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB are free")

model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(50):
    images = torch.rand(64, 3, 224, 224, device="cuda")
    labels = torch.randint(1000, (64,), device="cuda")
    loss = F.cross_entropy(model(images), labels)  # <- out of memory
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
