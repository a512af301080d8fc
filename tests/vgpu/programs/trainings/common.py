# SPDX-License-Identifier: Apache-2.0
"""The model that these programs train: 24 layers of 4 MiB. With Adam a training holds 4 x 96 MiB, its activations beside them."""

import torch

WIDTH, LAYERS = 1024, 24
MODEL = LAYERS * WIDTH * WIDTH * 4


def make_model():
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))


def make_loader(count=640, batch=64):
    data = torch.utils.data.TensorDataset(torch.zeros(count, WIDTH))
    return torch.utils.data.DataLoader(data, batch_size=batch)


def train(model, optimizer, loader, epochs=2):
    for _ in range(epochs):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = model(x.cuda()).pow(2).mean()
            loss.backward()
            optimizer.step()


def evaluate(model, loader):
    with torch.no_grad():
        return sum(model(x.cuda()).pow(2).mean().item() for (x,) in loader)
