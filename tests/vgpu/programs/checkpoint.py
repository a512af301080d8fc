# SPDX-License-Identifier: Apache-2.0
"""checkpoint.py FOLDER whole|headers|holes: a small Llama of random weights in several safetensors files, a pickled one, and
the same with only the headers, or with holes."""

import json
import os
import struct
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

folder, kind = sys.argv[1:3]
torch.manual_seed(0)
config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=8, vocab_size=32000)
model = LlamaForCausalLM(config).to(torch.bfloat16)
model.save_pretrained(folder, max_shard_size="30MB")
torch.save(model.state_dict(), os.path.join(folder, "pickled.pt"))
for name in os.listdir(folder):
    if name.endswith(".safetensors") and kind != "whole":
        path = os.path.join(folder, name)
        with open(path, "r+b") as file:
            length, header = os.path.getsize(path), 8 + struct.unpack("<Q", file.read(8))[0]
            file.truncate(header)
            if kind == "holes":
                file.truncate(length)
json.dump(sorted(os.listdir(folder)), sys.stdout)
