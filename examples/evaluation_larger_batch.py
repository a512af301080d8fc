"""Trains a small GPT, 10,000 batches an epoch, and evaluates it after every second epoch.

Wrong: the evaluation takes 128 texts at once, whose logits need 12.3 GiB. A 12 GB card runs out after 20,000 good
steps.
"""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel


class Texts(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.randint(50257, (512,))  # your tokenised text


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = 0
    for tokens in loader:
        tokens = tokens.cuda()
        logits = model(input_ids=tokens).logits  # <- out of memory
        total += F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()
    return total / len(loader)


model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for epoch in range(1, 11):
    model.train()
    for tokens in DataLoader(Texts(40_000), batch_size=4, shuffle=True):
        tokens = tokens.cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if epoch % 2 == 0:
        print("epoch", epoch, "validation loss", evaluate(model, DataLoader(Texts(1280), batch_size=128)))
