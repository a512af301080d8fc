# SPDX-License-Identifier: Apache-2.0
"""A small convolutional net on made digits: fourteen epochs with one worker, an evaluation after each, saved at the end."""

import torch
import torchvision
from torch import nn
from torchvision import transforms

net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
                    nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)).cuda()  # fmt: skip
optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)


def loader(length, batch, shuffle):
    gray = transforms.Compose([transforms.Grayscale(), transforms.ToTensor()])
    digits = torchvision.datasets.FakeData(length, (3, 28, 28), 10, gray)
    return torch.utils.data.DataLoader(digits, batch_size=batch, shuffle=shuffle, num_workers=1, pin_memory=True)


train, test = loader(60000, 64, True), loader(10000, 1000, False)
for epoch in range(14):
    net.train()
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images.cuda()), labels.cuda()).backward()
        optimizer.step()
    net.eval()
    loss = 0
    with torch.no_grad():
        for images, labels in test:
            loss += nn.functional.cross_entropy(net(images.cuda()), labels.cuda(), reduction="sum").item()
    print(f"epoch {epoch} loss {loss / len(test.dataset):.4f}", flush=True)
    schedule.step()
torch.save(net.state_dict(), "mnist.pt")
