"""Trains a language model of 660 million parameters with AdamW.

Wrong: AdamW's default works on all parameters at once and needs a temporary copy of them, 2.5 GiB; a 12 GB card runs
out in the first update. With --one-by-one (foreach=False) it fits.
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--one-by-one", action="store_true")
options = parser.parse_args()

config = LlamaConfig(
    hidden_size=1536, intermediate_size=6144, num_hidden_layers=15, num_attention_heads=16, num_key_value_heads=16
)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=False if options.one_by_one else None)

for step in range(100):
    tokens = torch.randint(32_000, (1, 256)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()  # <- out of memory
    optimizer.zero_grad()
