"""Trains a language model of 630 million parameters, saves it, and goes on from what was saved.

Wrong: the loaded checkpoint lives as long as the training that follows, and torch.load() has put it onto the card: the model's
part of it, 2.4 GiB, lies there for nothing. Training fits a 12 GB card, going on with it does not.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=1536, intermediate_size=6144, num_hidden_layers=14, num_attention_heads=16, num_key_value_heads=16
)


def build():
    model = LlamaForCausalLM(config).cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


def train(model, optimizer, steps):
    for _ in range(steps):
        tokens = torch.randint(32_000, (1, 256), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def begin():
    model, optimizer = build()
    train(model, optimizer, 2)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2}, "last.pt")


def resume():
    model, optimizer = build()
    checkpoint = torch.load("last.pt")  # <- the mistake
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer, 10)


begin()
resume()
