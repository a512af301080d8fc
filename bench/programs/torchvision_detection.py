# SPDX-License-Identifier: Apache-2.0
"""A detector of torchvision in training, on pictures and boxes that are made."""

import argparse

import torch
import torchvision


class Pictures(torch.utils.data.Dataset):
    def __init__(self, size, masks):
        self.size, self.masks = size, masks

    def __len__(self):
        return 64

    def __getitem__(self, index):
        height, width = self.size
        boxes = torch.tensor([[10.0, 20.0, 200.0, 220.0], [50.0, 60.0, 300.0, 310.0], [5.0, 5.0, 90.0, 400.0]])
        target = {"boxes": boxes, "labels": torch.tensor([1, 2, 3])}
        if self.masks:
            target["masks"] = torch.ones(3, height, width, dtype=torch.uint8)
        return torch.rand(3, height, width), target


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="fasterrcnn_resnet50_fpn")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    build = getattr(torchvision.models.detection, options.model)
    model = build(weights=None, weights_backbone=None, num_classes=91).cuda().train()
    data = Pictures((800, 1066), options.model.startswith("mask"))
    loader = torch.utils.data.DataLoader(data, options.batch, collate_fn=lambda rows: tuple(zip(*rows)))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.02, momentum=0.9)
    for step, (pictures, targets) in enumerate(loader):
        pictures = [picture.cuda() for picture in pictures]
        targets = [{name: value.cuda() for name, value in target.items()} for target in targets]
        loss = sum(model(pictures, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item(), flush=True)
        if step + 1 == options.steps:
            break
    model.eval()
    with torch.no_grad():
        found = model([torch.rand(3, 800, 1066, device="cuda")])
    print("found", len(found[0]["boxes"]))


main()
