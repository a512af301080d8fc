# SPDX-License-Identifier: Apache-2.0
"""One process over two cards: one_process.py dp | map | hand."""

import sys

import torch
from torch import nn

way = sys.argv[1]
if way == "map":
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000)
    folder = sys.argv[2]
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="auto")
    print(sorted(set(map(str, model.hf_device_map.values()))))
else:
    layers = [nn.Linear(2048, 2048) for _ in range(8)]
    if way == "dp":
        model = nn.DataParallel(nn.Sequential(*layers).cuda())
    else:

        class Split(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Sequential(*layers[:4]).to("cuda:0"), nn.Sequential(*layers[4:]).to("cuda:1")

            def forward(self, x):
                return self.second(self.first(x.to("cuda:0")).to("cuda:1"))

        model = Split()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    if way == "map":
        ids = torch.randint(32000, (2, 128)).to("cuda:0")
        model(input_ids=ids, labels=ids).loss.backward()
    else:
        model(torch.randn(64, 2048).cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
