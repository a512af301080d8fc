"""Trains a language model of 700 million parameters and averages its weights as it goes.

Wrong: the average is one more copy of the parameters on the card, 2.6 GiB; a 12 GB card runs out in the first update.
"""

import copy

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=1536, intermediate_size=6144, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16
)
model = LlamaForCausalLM(config).cuda()
average = copy.deepcopy(model).requires_grad_(False)  # <- the mistake
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

for step in range(100):
    tokens = torch.randint(32_000, (1, 256)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()  # <- out of memory
    optimizer.zero_grad()
    with torch.no_grad():
        for mean, parameter in zip(average.parameters(), model.parameters()):
            mean.lerp_(parameter, 0.001)
