# SPDX-License-Identifier: Apache-2.0
"""Ray Train: DistributedDataParallel in two actors of a cluster of one node, which it starts itself."""

import pathlib

import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn


def train():
    model = prepare_model(nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.randn(64, 2048).cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    trainer = TorchTrainer(train, scaling_config=ScalingConfig(num_workers=2, use_gpu=True),
                           run_config=RunConfig(storage_path=str(pathlib.Path.cwd() / "results")))  # fmt: skip
    trainer.fit()
