# SPDX-License-Identifier: Apache-2.0
"""Ray Train: a TorchTrainer with one worker that trains GPT-2."""

import ray.train
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from transformers import AutoConfig, AutoModelForCausalLM


def train(config):
    sizes = AutoConfig.for_model("gpt2")
    model = prepare_model(AutoModelForCausalLM.from_config(sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(config["steps"]):
        tokens = torch.randint(0, sizes.vocab_size, (8, 512), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ray.train.report({"loss": loss.item(), "peak": torch.cuda.max_memory_allocated()})


if __name__ == "__main__":
    trainer = TorchTrainer(train, train_loop_config={"steps": 8}, scaling_config=ScalingConfig(num_workers=1, use_gpu=True),
                           run_config=RunConfig(storage_path="/tmp/ray-results-of-the-bench"))  # fmt: skip
    print(trainer.fit().metrics)
