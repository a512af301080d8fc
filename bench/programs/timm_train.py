# SPDX-License-Identifier: Apache-2.0
"""An image classifier of timm: mixed precision, mixup, EMA, its own optimizers, schedule and losses."""

import argparse

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3, NativeScaler

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--ema", action="store_true")
parser.add_argument("--steps", type=int, default=10)
options = parser.parse_args()
model = timm.create_model(options.model, pretrained=False, num_classes=1000).cuda().train()
average = ModelEmaV3(model, decay=0.999) if options.ema else None
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=100)
mix = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=1000)
scaler, criterion = NativeScaler(), SoftTargetCrossEntropy()
for step in range(options.steps):
    pictures = torch.rand(options.batch, 3, 224, 224, device="cuda")
    pictures, targets = mix(pictures, torch.randint(0, 1000, (options.batch,), device="cuda"))
    with torch.autocast("cuda", dtype=torch.float16, enabled=options.amp):
        loss = criterion(model(pictures), targets)
    optimizer.zero_grad()
    scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
    if average:
        average.update(model)
    schedule.step_update(step)
    print(step, loss.item(), flush=True)
