"""Trains a language model of 1.1 billion parameters, one text of 256 tokens at a time.

Wrong: AdamW keeps two more copies of the 4.1 GiB of parameters; a 12 GB card runs out in the first update. With
--optimizer sgd it fits. With --layers 40 not even parameters and gradients do: it runs out in the first backward.
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
parser.add_argument("--layers", type=int, default=22)
options = parser.parse_args()

config = LlamaConfig(
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=options.layers,
    num_attention_heads=32,
    num_key_value_heads=4,
)
model = LlamaForCausalLM(config).cuda()
if options.optimizer == "adamw":
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

for step in range(100):
    tokens = torch.randint(32_000, (1, 256)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss  # <- out of memory in backward
    loss.backward()
    optimizer.step()  # <- out of memory
    optimizer.zero_grad()
