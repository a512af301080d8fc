# SPDX-License-Identifier: Apache-2.0
"""Texts written on by a language model, in 16 bits or quantised while it is loaded."""

import argparse

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--load-in-8bit", action="store_true")
parser.add_argument("--load-in-4bit", action="store_true")
parser.add_argument("--max-new-tokens", type=int, default=32)
options = parser.parse_args()

quantization = None
if options.load_in_8bit or options.load_in_4bit:
    quantization = BitsAndBytesConfig(load_in_8bit=options.load_in_8bit, load_in_4bit=options.load_in_4bit,
                                      bnb_4bit_compute_dtype=torch.float16)  # fmt: skip
model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float16, device_map={"": 0}, quantization_config=quantization)
prompt = torch.randint(5, 32000, (1, 256), device="cuda")
tokens = model.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=options.max_new_tokens,
                        min_new_tokens=options.max_new_tokens, do_sample=False, pad_token_id=0)  # fmt: skip
print(tuple(tokens.shape))
