# SPDX-License-Identifier: Apache-2.0
"""Faster R-CNN in training. With the word "forced" what is selected is everything by construction: selections are written as
ranges of a size that is known on the host, so that no count is read from the card for them."""

import sys

import torch
import torchvision

if "forced" in sys.argv:
    select = torch.where

    def where(condition, *others):
        if others:
            return select(condition, *others)
        everything = torch.arange(condition.numel(), device=condition.device)
        return tuple(everything.clone() if dim else everything for dim in range(condition.dim()))

    torch.where = where
    torchvision.ops.boxes.batched_nms = lambda boxes, scores, idxs, iou: torch.arange(len(boxes), device=boxes.device)

net = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for _ in range(2):
    images = [torch.rand(3, 320, 480, device="cuda") for _ in range(2)]
    targets = [{"boxes": torch.tensor([[10.0, 10, 100, 100]], device="cuda"), "labels": torch.tensor([1], device="cuda")}] * 2
    sum(net(images, targets).values()).backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained", torch.cuda.max_memory_allocated())
