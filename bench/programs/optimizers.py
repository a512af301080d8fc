# SPDX-License-Identifier: Apache-2.0
"""GPT-2 trained by a hand-written loop with the optimizer that is named: bitsandbytes' and torchao's."""

import argparse

import torch
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("optimizer")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--medium", action="store_true")
options = parser.parse_args()


def build(name, parameters):
    if name.startswith("bnb."):
        import bitsandbytes

        return getattr(bitsandbytes.optim, name[4:])(parameters, lr=1e-4)
    if name.startswith("ao."):
        import torchao.optim

        return getattr(torchao.optim, name[3:])(parameters, lr=1e-4)
    return getattr(torch.optim, name)(parameters, lr=1e-4)


sizes = {"n_embd": 1024, "n_layer": 24, "n_head": 16} if options.medium else {}
config = AutoConfig.for_model("gpt2", **sizes)
model = AutoModelForCausalLM.from_config(config).cuda().train()
optimizer = build(options.optimizer, model.parameters())
for step in range(8):
    tokens = torch.randint(0, config.vocab_size, (options.batch, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
