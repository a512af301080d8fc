"""Fine-tunes a GPT of 355 million parameters (the size of GPT-2 medium). Does it fit your card?

    tonnage run --gpu rtx3060 -- python examples/finetune.py
    tonnage run --gpu rtx3060 -- python examples/finetune.py --batch 2
"""

import argparse

import torch
from model import GPT
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--length", type=int, default=1024)
parser.add_argument("--steps", type=int, default=50)
options = parser.parse_args()

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
texts = torch.randint(50257, (options.batch * options.steps, options.length + 1))  # your tokenised texts

for step, batch in enumerate(DataLoader(texts, batch_size=options.batch, shuffle=True)):
    tokens = batch.cuda()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

torch.save(model.state_dict(), "finetuned.pt")
