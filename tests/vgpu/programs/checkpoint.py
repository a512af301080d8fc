# SPDX-License-Identifier: Apache-2.0
"""checkpoint.py FOLDER: in FOLDER/whole a small Llama of random weights in several safetensors files and a pickled one; in FOLDER/headers and
FOLDER/holes the same with only the headers, and with holes."""

import json
import os
import shutil
import struct
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

whole, headers, holes = (os.path.join(sys.argv[1], kind) for kind in ("whole", "headers", "holes"))
torch.manual_seed(0)
config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=8, vocab_size=32000)
model = LlamaForCausalLM(config).to(torch.bfloat16)
model.save_pretrained(whole, max_shard_size="30MB")
torch.save(model.state_dict(), os.path.join(whole, "pickled.pt"))
for name in os.listdir(whole):
    path = os.path.join(whole, name)
    for folder in headers, holes:
        os.makedirs(folder, exist_ok=True)
        if not name.endswith(".safetensors"):
            shutil.copy(path, folder)
            continue
        with open(path, "rb") as file, open(os.path.join(folder, name), "wb") as copy:
            start = file.read(8)
            copy.write(start + file.read(struct.unpack("<Q", start)[0]))
            if folder == holes:
                copy.truncate(os.path.getsize(path))
json.dump(sorted(os.listdir(whole)), sys.stdout)
