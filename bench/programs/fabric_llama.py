# SPDX-License-Identifier: Apache-2.0
"""Lightning Fabric: TinyLlama's size in bf16-true with AdamW, micro-batches of 2 x 1024."""

import lightning
import torch
from made import MODELS
from transformers import AutoConfig, AutoModelForCausalLM

fabric = lightning.Fabric(accelerator="cuda", devices=1, precision="bf16-true")
fabric.launch()
kind, sizes = MODELS["tinyllama-1.1b"]
with fabric.init_module():
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
model, optimizer = fabric.setup(model, optimizer)
for step in range(16):
    tokens = torch.randint(5, 32000, (2, 1024), device=fabric.device)
    with fabric.no_backward_sync(model, enabled=step % 2 == 0):
        loss = model(input_ids=tokens, labels=tokens).loss
        fabric.backward(loss / 2)
    if step % 2:
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
    fabric.print(step, loss.item())
fabric.save("last.ckpt", {"model": model})
