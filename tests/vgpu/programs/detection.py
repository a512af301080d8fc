# SPDX-License-Identifier: Apache-2.0
"""Faster R-CNN in training. With the word "forced" what is selected is everything by construction: selections are written as
ranges of a size that is known on the host, so that no count is read from the card for them; of what its samplers draw,
as many as they are documented to draw (batch_size_per_image, positive_fraction). With "cpu" it runs on the CPU, with "shapes"
it prints what the tensors of a forward and a backward pass come to at most."""

import sys
import weakref

import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode
from torchvision.models.detection import _utils

device = "cpu" if "cpu" in sys.argv else "cuda"
if "forced" in sys.argv:
    select = torch.where

    def where(condition, *others):
        if others or condition.dtype is torch.uint8:  # what a sampler drew is known
            return select(condition, *others)
        everything = torch.arange(condition.numel(), device=condition.device)
        return tuple(everything.clone() if dim else everything for dim in range(condition.dim()))

    def draw(self, matched):
        drawn = [], []
        for row in matched:
            positive = min(row.numel(), int(self.batch_size_per_image * self.positive_fraction))
            negative = min(row.numel(), self.batch_size_per_image - positive)
            for masks, begin, count in zip(drawn, (0, positive), (positive, negative)):
                masks.append(torch.zeros_like(row, dtype=torch.uint8))
                masks[-1][begin : begin + count] = 1
        return drawn

    torch.where = where
    torchvision.ops.boxes.batched_nms = lambda boxes, scores, idxs, iou: torch.arange(len(boxes), device=boxes.device)
    _utils.BalancedPositiveNegativeSampler.__call__ = draw


class Shapes(TorchDispatchMode):
    """What the storages that operations made hold at once, at most."""

    live = peak = 0
    seen = weakref.WeakSet()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.device.type == device:
                storage = tensor.untyped_storage()
                if storage not in self.seen:
                    self.seen.add(storage)
                    Shapes.live += storage.nbytes()
                    weakref.finalize(storage, self.let_go, storage.nbytes())
        Shapes.peak = max(Shapes.peak, Shapes.live)
        return out

    def let_go(self, size):
        Shapes.live -= size


small = {"min_size": 200} if "shapes" in sys.argv else {}
net = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, **small).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for _ in range(2):
    images = [torch.rand(3, 320, 480, device=device) for _ in range(2)]
    targets = [{"boxes": torch.tensor([[10.0, 10, 100, 100]], device=device), "labels": torch.tensor([1], device=device)}] * 2
    if "shapes" in sys.argv:
        with Shapes():
            sum(net(images, targets).values()).backward()
        print("shapes", Shapes.peak)
        break
    sum(net(images, targets).values()).backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
