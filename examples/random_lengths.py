"""Trains a small GPT on batches of 16 texts, each padded to its longest.

Wrong: nothing until batch 90, which has one text of 1024 words among short ones. A 12 GB card runs out there.
"""

import random

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(0)
lengths = [[random.randint(16, 256) for _ in range(16)] for _ in range(120)]
lengths[89][7] = 1024

model = GPT2LMHeadModel(GPT2Config(n_layer=6)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step, batch in enumerate(lengths, 1):
    texts = [torch.randint(50257, (length,)) for length in batch]
    tokens = pad_sequence(texts, batch_first=True).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss  # <- out of memory
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
