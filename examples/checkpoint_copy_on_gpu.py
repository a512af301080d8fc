"""Trains a language model of 590 million parameters and saves what is best so far.

Wrong: the copy of model and optimizer that is to be saved is made on the card, 6.6 GiB. Training fits a 12 GB card,
saving runs out.
"""

import copy

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM


def save(model, optimizer, file):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(copy.deepcopy(state), file)  # <- out of memory


config = LlamaConfig(
    hidden_size=1536, intermediate_size=6144, num_hidden_layers=13, num_attention_heads=16, num_key_value_heads=16
)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
texts = torch.randint(32_000, (5_000, 256))
best = float("inf")

for epoch in range(3):
    for tokens in DataLoader(texts, shuffle=True):
        tokens = tokens.cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if loss.item() < best:
        best = loss.item()
        save(model, optimizer, "best.pt")
