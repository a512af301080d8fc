"""Trains ResNet-50 on ImageNet-sized pictures, 192 at a time.

Wrong: the batch. Its activations need about 16 GiB; a 12 GB card runs out in the first forward pass.
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=192)
options = parser.parse_args()


class Pictures(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        return torch.zeros(3, 224, 224), index % 1000  # your picture and its class


model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for images, labels in DataLoader(Pictures(), batch_size=options.batch, shuffle=True, drop_last=True):
    images, labels = images.cuda(), labels.cuda()
    loss = F.cross_entropy(model(images), labels)  # <- out of memory
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
