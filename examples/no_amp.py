"""Trains a vision transformer, ViT-B/16, on 112 pictures at a time; with --amp in mixed precision.

Wrong: all activations are float32. A 12 GB card runs out in the first forward pass; with --amp it fits.
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import vit_b_16

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
options = parser.parse_args()


class Pictures(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        return torch.zeros(3, 224, 224), index % 1000  # your picture and its class


model = vit_b_16().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda", enabled=options.amp)

for images, labels in DataLoader(Pictures(), batch_size=112, shuffle=True, drop_last=True):
    images, labels = images.cuda(), labels.cuda()
    with torch.autocast("cuda", dtype=torch.float16, enabled=options.amp):
        loss = F.cross_entropy(model(images), labels)  # <- out of memory
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
