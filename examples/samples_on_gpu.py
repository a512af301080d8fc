"""Trains a classifier of pictures; the Dataset prepares its 40,000 pictures when it is made.

Wrong: it prepares them on the card and leaves them there, 0.4 MiB each. A 12 GB card is full before the first step;
prepared one by one as they are needed (--later) it fits.
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("--later", action="store_true")
options = parser.parse_args()


def prepare(picture):
    return F.interpolate(picture.cuda()[None].float().div(255), (192, 192), mode="bilinear")[0]  # <- out of memory


class Pictures(Dataset):
    def __init__(self, count):
        self.pictures = torch.zeros(8, 3, 256, 256, dtype=torch.uint8)  # your pictures
        self.count = count
        self.samples = None if options.later else [prepare(self.pictures[index % 8]) for index in range(count)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.samples[index] if self.samples else prepare(self.pictures[index % 8]), index % 10


pictures = Pictures(40_000)
model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.Adam(model.parameters())
for images, labels in DataLoader(pictures, batch_size=64, shuffle=True):
    loss = F.cross_entropy(model(images), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
