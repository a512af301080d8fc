# SPDX-License-Identifier: Apache-2.0
"""Ninety epochs of ImageNet's length with made pictures, eight workers, an evaluation and a checkpoint after each epoch."""

import torch
import torchvision
from torchvision import transforms


def loader(length, shuffle):
    pictures = torchvision.datasets.FakeData(length, (3, 224, 224), 1000, transforms.ToTensor())
    return torch.utils.data.DataLoader(pictures, batch_size=64, shuffle=shuffle, num_workers=8, pin_memory=True)


def main():
    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    criterion = torch.nn.CrossEntropyLoss().cuda()
    train, validation = loader(1281167, True), loader(50000, False)
    for epoch in range(90):
        model.train()
        for images, labels in train:
            loss = criterion(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in validation:
                correct += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()
        print(f"epoch {epoch} accuracy {correct / len(validation.dataset)}", flush=True)
        schedule.step()
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")


if __name__ == "__main__":
    main()
