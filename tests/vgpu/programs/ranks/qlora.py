"""Adapters on a base of four bits, as torchtune has them, under FSDP2, trained for four steps: qlora.py [RANK-OF-ADAPTERS]."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torchtune.modules.peft import LoRALinear, get_adapter_params, set_trainable_params

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


RANK = int(sys.argv[1]) if len(sys.argv) > 1 else 15


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = (LoRALinear(*sizes, rank=RANK, alpha=30, quantize_base=True) for sizes in ((512, 1024), (1024, 512)))

    def forward(self, values):
        return self.down(self.up(values).relu())


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = nn.Sequential(*[Block() for _ in range(24)])
set_trainable_params(model, get_adapter_params(model))
for block in model:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
for _ in range(4):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
