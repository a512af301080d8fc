"""Trains ResNet-50 on 96 pictures at a time and looks at the loss of 64 others after every tenth step.

Wrong: the evaluation builds a graph, and `loss` holds it until the next training step has run its forward pass: 5 GiB more than
the training needs. A 12 GB card runs out there; with --no-grad it fits.
"""

import argparse

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--no-grad", action="store_true")
options = parser.parse_args()

model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
images, labels = torch.zeros(96, 3, 224, 224), torch.zeros(96, dtype=torch.long)  # your pictures and their classes
others, their_labels = torch.zeros(64, 3, 224, 224), torch.zeros(64, dtype=torch.long)

for step in range(40):
    model.train()
    loss = F.cross_entropy(model(images.cuda()), labels.cuda())  # <- out of memory
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        model.eval()
        with torch.set_grad_enabled(not options.no_grad):
            loss = F.cross_entropy(model(others.cuda()), their_labels.cuda())  # <- the mistake
        print("step", step, "validation loss", loss.item())
