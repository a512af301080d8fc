"""A small model under DeepSpeed's ZeRO: deepspeed_zero.py STAGE BUCKET [bf16] [offload [parameters]]."""

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


words = [word for word in sys.argv[1:] if not word.startswith("--local_rank")]  # DeepSpeed's launcher adds it
config = {
    "train_micro_batch_size_per_gpu": 8,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": int(words[0]), "reduce_bucket_size": int(words[1])},
}
if "bf16" in words:
    config.update(bf16={"enabled": True}, gradient_clipping=1.0)
if "offload" in words:
    config["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
    config["zero_force_ds_cpu_optimizer"] = False  # its own is compiled as it is first used
if "parameters" in words:
    config["zero_optimization"]["offload_param"] = {"device": "cpu"}
model = nn.Sequential(*[Block() for _ in range(24)])
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for step in range(4):
    engine.backward(engine(torch.randn(8, 500, device=engine.device, dtype=torch.bfloat16 if "bf16" in words else None)).sum())
    engine.step()
print(f"steps skipped: {engine.skipped_steps}")
