"""Trains a language model of 660 million parameters with DistributedDataParallel, on one card.

Wrong: its buckets are one more copy of the gradients, 2.5 GiB. A 12 GB card, which holds the model alone, runs out in
the first update.
"""

import os

import torch
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
torch.distributed.init_process_group("nccl", rank=0, world_size=1)
config = LlamaConfig(
    hidden_size=1536, intermediate_size=6144, num_hidden_layers=15, num_attention_heads=16, num_key_value_heads=16
)
model = DistributedDataParallel(LlamaForCausalLM(config).cuda())  # <- the mistake
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

for step in range(100):
    tokens = torch.randint(32_000, (1, 128)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()  # <- out of memory
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
