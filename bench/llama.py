"""Trains a Llama-style model built from a configuration, in bf16 with AdamW: 6.7 or 69 billion parameters.

    python llama.py 7b
    python llama.py 70b
"""
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

SIZES = {
    "7b": (4, {}),
    "70b": (
        1,
        {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
         "num_key_value_heads": 8, "vocab_size": 128256},
    ),
}
batch, figures = SIZES[sys.argv[1]]
config = LlamaConfig(**figures, max_position_embeddings=4096)
model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(4):
    tokens = torch.randint(config.vocab_size, (batch, 2048), device="cuda")
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.1f} billion parameters")
