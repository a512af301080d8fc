# SPDX-License-Identifier: Apache-2.0
"""transformers' set-prediction detectors in training: Hungarian matching on the host, asserts on boxes: detr, rtdetr."""

import argparse

import torch
from transformers import (
    DetrConfig,
    DetrForObjectDetection,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
)

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["detr", "rtdetr"])
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--unfrozen", action="store_true", help="train the backbone but its first stage, as the paper does")
options = parser.parse_args()
if options.kind == "detr":
    backbone = ResNetConfig(out_features=["stage4"])
    config = DetrConfig(backbone_config=backbone, use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, num_labels=91)
    model, size = DetrForObjectDetection(config), (800, 1066)
else:
    model, size = RTDetrForObjectDetection(RTDetrConfig(num_labels=80)), (640, 640)
if options.unfrozen:
    for name, parameter in model.named_parameters():
        if "encoder.stages." in name and "stages.0" not in name:
            parameter.requires_grad_(True)
model = model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)
for step in range(8):
    pictures = torch.rand(options.batch, 3, *size, device="cuda")
    labels = [{"class_labels": torch.randint(0, 80, (6,), device="cuda"), "boxes": torch.rand(6, 4, device="cuda") * 0.4 + 0.1}
              for _ in range(options.batch)]  # fmt: skip
    out = model(pixel_values=pictures, labels=labels)
    optimizer.zero_grad()
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print(step, out.loss.item(), flush=True)
