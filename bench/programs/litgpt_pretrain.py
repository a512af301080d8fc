# SPDX-License-Identifier: Apache-2.0
"""litgpt: a model of Pythia-410m's size by its GPT class and chunked loss, bf16-true, as its pretraining does."""

import lightning
import torch
from litgpt import GPT, Config
from litgpt.utils import chunked_cross_entropy

fabric = lightning.Fabric(devices=1, accelerator="cuda", precision="bf16-true")
fabric.launch()
config = Config.from_name("pythia-410m")
with fabric.init_module(empty_init=False):
    model = GPT(config)
model.apply(model._init_weights)
model = fabric.setup(model)
optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True))
for step in range(10):
    tokens = torch.randint(0, config.vocab_size, (4, 1025), device=fabric.device)
    loss = chunked_cross_entropy(model(tokens[:, :-1].contiguous()), tokens[:, 1:].contiguous(), chunk_size=0)
    fabric.backward(loss)
    fabric.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
