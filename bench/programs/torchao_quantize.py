# SPDX-License-Identifier: Apache-2.0
"""torchao on TinyLlama's size: int8, fp8 for inference, or fp8 training."""

import sys

import torch
from transformers import AutoModelForCausalLM

kind, path = sys.argv[1:3]
model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, device_map={"": 0})


def infer(config):
    from torchao.quantization import quantize_

    quantize_(model, config)
    with torch.inference_mode():
        for _ in range(4):
            tokens = torch.randint(5, 32000, (4, 256), device="cuda")
            logits = model(tokens).logits
    print(tuple(logits.shape), torch.cuda.memory_allocated() >> 20, "MiB now")


def int8():
    from torchao.quantization import Int8WeightOnlyConfig

    infer(Int8WeightOnlyConfig())


def fp8():
    from torchao.quantization import Float8DynamicActivationFloat8WeightConfig

    infer(Float8DynamicActivationFloat8WeightConfig())


def fp8_training():
    from torchao.float8 import convert_to_float8_training

    model.train()
    convert_to_float8_training(model, module_filter_fn=lambda module, name: "lm_head" not in name)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step in range(6):
        tokens = torch.randint(5, 32000, (4, 512), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item(), flush=True)


globals()[kind]()
