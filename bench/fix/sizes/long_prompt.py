# SPDX-License-Identifier: Apache-2.0
"""A prompt of 32,768 tokens is read, and a few words are written, by a loop of its own."""

import argparse

import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--tokens", type=int, default=32768)
parser.add_argument("--words", type=int, default=8)
options = parser.parse_args()

model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16, device_map={"": 0})
tokens = torch.randint(5, 32000, (1, options.tokens), device="cuda")
cache, written = None, []
with torch.inference_mode():
    for word in range(options.words):
        outputs = model(input_ids=tokens, past_key_values=cache, use_cache=True)
        cache = outputs.past_key_values
        tokens = outputs.logits[:, -1].argmax(-1, keepdim=True)
        written.append(tokens)
print(torch.cat(written, 1).shape)
