"""Fine-tunes a GPT with options as most scripts have them: what keeps the training as it is, is a command line away.

    tonnage fix --gpu rtx3060 -- python examples/own_switches.py
    tonnage fix --gpu rtx3060 -- python examples/own_switches.py --per-device-batch-size 1 --length 4096
"""

import argparse

import torch
from model import GPT
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--per-device-batch-size", type=int, default=8)
parser.add_argument("--gradient-accumulation-steps", type=int, default=1)
parser.add_argument("--gradient-checkpointing", action="store_true")
parser.add_argument("--length", type=int, default=1024)
options = parser.parse_args()

model = GPT(length=options.length).cuda()
if options.gradient_checkpointing:
    for block in model.blocks:
        block.forward = lambda x, forward=block.forward: checkpoint(forward, x, use_reentrant=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
texts = torch.randint(50257, (64 * options.per_device_batch_size, options.length + 1))

for turn, batch in enumerate(DataLoader(texts, batch_size=options.per_device_batch_size, shuffle=True)):
    tokens = batch.cuda()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())  # <- out of memory in backward
    loss = loss / options.gradient_accumulation_steps
    loss.backward()
    if (turn + 1) % options.gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
