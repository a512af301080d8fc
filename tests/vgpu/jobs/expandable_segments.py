import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=6)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for length in (128, 384, 256, 512):
    tokens = torch.randint(50257, (8, length), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("reserved", torch.cuda.max_memory_reserved())
