"""The training of finetune.py, shared by several cards: FSDP2 cuts parameters, gradients and optimizer state among them.

    tonnage run --gpu rtx3060 --gpus 4 -- torchrun --nproc-per-node 4 examples/fsdp2.py
"""

import os

import torch
import torch.distributed as dist
from model import GPT
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = GPT().cuda()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
for step in range(50):
    tokens = torch.randint(50257, (8 // dist.get_world_size(), 1025), device="cuda")
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
