# SPDX-License-Identifier: Apache-2.0
"""images.py FOLDER [WORKERS [START]]: a small ResNet on an ImageFolder, with a look at other images after each epoch."""

import sys

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

folder, workers, start = (sys.argv[1:] + [None, "0", None][len(sys.argv) - 1 :])[:3]

if __name__ == "__main__":
    crop = transforms.Compose([transforms.RandomResizedCrop(96), transforms.ToTensor()])
    middle = transforms.Compose([transforms.Resize(128), transforms.CenterCrop(96), transforms.ToTensor()])
    train, val = datasets.ImageFolder(f"{folder}/train", crop), datasets.ImageFolder(f"{folder}/val", middle)
    model = models.resnet18(num_classes=len(train.classes)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    options = {"num_workers": int(workers), "multiprocessing_context": start}
    for _ in range(2):
        model.train()
        for images, classes in DataLoader(train, batch_size=8, shuffle=True, **options):
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), classes.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for images, _ in DataLoader(val, batch_size=12):
                model(images.cuda())
    print("images seen", len(train), len(val))
