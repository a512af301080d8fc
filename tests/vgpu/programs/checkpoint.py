# SPDX-License-Identifier: Apache-2.0
"""checkpoint.py FOLDER: in FOLDER/whole a small Llama of random weights, as transformers saves it, in several safetensors files, and a pickled one;
in FOLDER/headers and FOLDER/holes the former with only the headers, and with holes."""

import json
import os
import shutil
import struct
import sys

import torch
from safetensors.torch import save_file

whole, headers, holes = (os.path.join(sys.argv[1], kind) for kind in ("whole", "headers", "holes"))
WIDE, INNER, LAYERS, WORDS, FILES = 512, 1376, 4, 32000, 3
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_size": WIDE, "intermediate_size": INNER,
          "num_hidden_layers": LAYERS, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": WORDS}  # fmt: skip


def shapes():
    yield "model.embed_tokens.weight", (WORDS, WIDE)
    for layer in range(LAYERS):
        for name in "qkvo":
            yield f"model.layers.{layer}.self_attn.{name}_proj.weight", (WIDE, WIDE)
        for name, shape in (("gate", (INNER, WIDE)), ("up", (INNER, WIDE)), ("down", (WIDE, INNER))):
            yield f"model.layers.{layer}.mlp.{name}_proj.weight", shape
        for name in ("input", "post_attention"):
            yield f"model.layers.{layer}.{name}_layernorm.weight", (WIDE,)
    yield "model.norm.weight", (WIDE,)
    yield "lm_head.weight", (WORDS, WIDE)


def write(path, content):
    with open(path, "w") as file:
        json.dump(content, file)


torch.manual_seed(0)
state = {name: torch.rand(shape, dtype=torch.bfloat16) / 50 for name, shape in shapes()}
os.makedirs(whole)
write(os.path.join(whole, "config.json"), CONFIG)
torch.save(state, os.path.join(whole, "pickled.pt"))
files = {name: f"model-{at % FILES + 1:05}-of-{FILES:05}.safetensors" for at, name in enumerate(state)}
for each in set(files.values()):
    save_file({name: state[name] for name in state if files[name] == each}, os.path.join(whole, each), {"format": "pt"})
size = sum(tensor.nbytes for tensor in state.values())
write(os.path.join(whole, "model.safetensors.index.json"), {"metadata": {"total_size": size}, "weight_map": files})
for name in os.listdir(whole):
    path = os.path.join(whole, name)
    for folder in headers, holes:
        os.makedirs(folder, exist_ok=True)
        if name.endswith(".json"):
            shutil.copy(path, folder)
        if not name.endswith(".safetensors"):
            continue
        with open(path, "rb") as file, open(os.path.join(folder, name), "wb") as copy:
            start = file.read(8)
            copy.write(start + file.read(struct.unpack("<Q", start)[0]))
            if folder == holes:
                copy.truncate(os.path.getsize(path))
json.dump(sorted(os.listdir(whole)), sys.stdout)
