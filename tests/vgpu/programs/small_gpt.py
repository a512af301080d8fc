"""Trains a GPT of the examples, which needs no library besides PyTorch, as large as GPT-2."""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples"))
from model import GPT  # noqa: E402

model = GPT(width=768, layers=12, heads=12).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for _ in range(4):
    tokens = torch.randint(1000, (8, 512), device="cuda")
    logits = model(tokens)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
