"""Prunes half of the weights of a model with 1.1 billion parameters, to make it smaller.

Wrong: pruning keeps the old weights and adds a mask and a product of the same size. 4.1 GiB become 12: a 12 GB card
runs out while it prunes.
"""

import torch
from torch import nn
from torch.nn.utils import prune
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4
)
model = LlamaForCausalLM(config).cuda().eval()
for module in model.modules():
    if isinstance(module, nn.Linear):
        prune.l1_unstructured(module, "weight", amount=0.5)  # <- out of memory

with torch.no_grad():
    print(model(input_ids=torch.randint(32_000, (1, 128)).cuda()).logits.shape)
