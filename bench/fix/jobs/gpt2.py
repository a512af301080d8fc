"""GPT-2, the small one or, with --medium, the medium one."""
import sys

import torch
from data import Tokens
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

size = {"n_embd": 1024, "n_layer": 24, "n_head": 16} if "--medium" in sys.argv else {}
model = GPT2LMHeadModel(GPT2Config(**size)).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for tokens in DataLoader(Tokens(800, 1024, 50257), batch_size=8, shuffle=True):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")
