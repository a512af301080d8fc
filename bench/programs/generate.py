# SPDX-License-Identifier: Apache-2.0
"""Text generation by transformers: from a checkpoint, with a dynamic or static cache, in 16 or 8 bits."""

import argparse

import torch
from made import texts
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--bits", type=int, default=16)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--prompt", type=int, default=128)
parser.add_argument("--new", type=int, default=64)
parser.add_argument("--sample", action="store_true")
options = parser.parse_args()
quantization = BitsAndBytesConfig(load_in_8bit=True) if options.bits == 8 else None
tokenizer = AutoTokenizer.from_pretrained(options.model)
model = AutoModelForCausalLM.from_pretrained(
    options.model, dtype=torch.bfloat16, device_map={"": 0}, quantization_config=quantization
)
inputs = tokenizer(texts(options.batch, options.prompt), return_tensors="pt", padding=True, return_token_type_ids=False).to("cuda")
how = {"do_sample": True, "top_p": 0.9, "top_k": 50} if options.sample else {"do_sample": False}
tokens = model.generate(**inputs, max_new_tokens=options.new, min_new_tokens=options.new, **how)
print(tokenizer.batch_decode(tokens, skip_special_tokens=True)[0][:60])
print(tuple(tokens.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
