# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO on one rank: GPT-2 in bf16 with PyTorch's AdamW."""

import argparse

import deepspeed
import torch
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser.add_argument("--stage", type=int, default=2)
options = parser.parse_args()
deepspeed.init_distributed()
config = AutoConfig.for_model("gpt2")
model = AutoModelForCausalLM.from_config(config)
settings = {
    "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1, "bf16": {"enabled": True},
    "zero_optimization": {"stage": options.stage}, "gradient_clipping": 1.0, "zero_allow_untested_optimizer": True}  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
for step in range(8):
    tokens = torch.randint(0, config.vocab_size, (8, 512), device=engine.device)
    loss = engine(input_ids=tokens, labels=tokens).loss
    engine.backward(loss)
    engine.step()
    print(step, loss.item(), flush=True)
