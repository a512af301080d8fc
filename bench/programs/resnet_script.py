# SPDX-License-Identifier: Apache-2.0
"""A plain training script: ResNet-50, 32 pictures a batch."""

import sys

import torch
import torchvision

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
net = torchvision.models.resnet50().cuda().train()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(8):
    pictures = torch.rand(batch, 3, 224, 224, device="cuda")
    loss = torch.nn.functional.cross_entropy(net(pictures), torch.randint(0, 1000, (batch,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), flush=True)
