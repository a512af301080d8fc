"""A small model under DeepSpeed's ZeRO: deepspeed_zero.py STAGE BUCKET."""

import sys

import deepspeed
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(500, 1001), nn.Linear(1001, 500)

    def forward(self, values):
        return self.down(self.up(values).relu())


config = {
    "train_micro_batch_size_per_gpu": 8,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": int(sys.argv[1]), "reduce_bucket_size": int(sys.argv[2])},
}
model = nn.Sequential(*[Block() for _ in range(24)])
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for step in range(4):
    engine.backward(engine(torch.randn(8, 500, device=engine.device)).sum())
    engine.step()
