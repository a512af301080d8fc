"""Trains GPT-2 with an effective batch of 32, four texts at a time.

Right: the loss is divided by the number of micro-steps and zeroed once an update. It fits a 12 GB card; --micro-batch
32 does not.
"""

import argparse

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--micro-batch", type=int, default=4)
options = parser.parse_args()
accumulate = 32 // options.micro_batch

model = GPT2LMHeadModel(GPT2Config()).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
texts = torch.randint(50257, (3200, 512))

for number, tokens in enumerate(DataLoader(texts, batch_size=options.micro_batch, shuffle=True), 1):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens).loss / accumulate  # <- out of memory
    loss.backward()
    if number % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
