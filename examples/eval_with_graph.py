"""Trains ResNet-50 on 32 pictures at a time and evaluates it on 256 at a time after each epoch.

Wrong: the evaluation builds a graph that nobody needs, 20 GiB. A 12 GB card runs out there; with --no-grad it fits.
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--no-grad", action="store_true")
options = parser.parse_args()


class Pictures(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.zeros(3, 224, 224), index % 1000  # your picture and its class


model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
training = DataLoader(Pictures(640), batch_size=32, shuffle=True)
validation = DataLoader(Pictures(512), batch_size=256)

for epoch in range(2):
    model.train()
    for images, labels in training:
        loss = F.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    right = 0
    with torch.set_grad_enabled(not options.no_grad):
        for images, labels in validation:
            right += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # <- out of memory
    print("epoch", epoch, "right", right)
