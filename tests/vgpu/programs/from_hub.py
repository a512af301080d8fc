# SPDX-License-Identifier: Apache-2.0
"""from_hub.py MODEL: what people write; trains a model of the hub for two steps."""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], device_map={"": 0})
ids = torch.tensor([tokenizer("word1 word2 word3 word4")["input_ids"] * 16] * 2, device="cuda")
assert ids.shape == (2, 64) and ids.max() == 7
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
