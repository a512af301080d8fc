"""Trains ResNet-50 and then averages its loss over the validation set.

Wrong: the list of losses keeps the graph of every batch, 2.5 GiB each; a 12 GB card runs out in the middle of the
validation.
"""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50


class Pictures(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.zeros(3, 224, 224), index % 1000  # your picture and its class


def validate(model, loader):
    model.eval()
    losses = []
    for images, labels in loader:
        losses.append(F.cross_entropy(model(images.cuda()), labels.cuda()))  # <- out of memory
    return torch.stack(losses).mean()


model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for images, labels in DataLoader(Pictures(320), batch_size=32, shuffle=True):
    loss = F.cross_entropy(model(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("validation loss", validate(model, DataLoader(Pictures(320), batch_size=32)).item())
