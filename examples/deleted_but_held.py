"""Trains one language model, deletes it, and trains a second one.

Wrong: the optimizer of the first still holds its parameters and their state, 6.2 GiB; del, gc.collect() and
empty_cache() give nearly nothing back. A 12 GB card runs out in the first update of the second. With the optimizer
deleted, too (--both), it fits.
"""

import argparse
import gc

import torch
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--both", action="store_true", help="delete the optimizer, too")
options = parser.parse_args()


def train(layers):
    config = LlamaConfig(hidden_size=1536, intermediate_size=6144, num_hidden_layers=layers, num_attention_heads=16)
    model = LlamaForCausalLM(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    for step in range(5):
        tokens = torch.randint(32_000, (1, 256)).cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()  # <- out of memory
        optimizer.zero_grad()
    return model, optimizer


model, optimizer = train(layers=12)
del model  # <- the mistake
if options.both:
    del optimizer
gc.collect()
torch.cuda.empty_cache()
print(f"{torch.cuda.memory_allocated() / 2**30:.1f} GiB are still allocated")
model, optimizer = train(layers=13)
