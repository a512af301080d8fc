# SPDX-License-Identifier: Apache-2.0
"""accelerate: a loop of one's own, save_state() and load_state(), and the best model in a file beside them.

    accelerate_loop.py                  train, and write state/ and best.pt
    accelerate_loop.py --resume         go on from there
    accelerate_loop.py --resume --best  the same, from the best weights so far
"""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load_best(accelerator):
    return torch.load("best.pt", map_location=accelerator.device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--best", action="store_true")
    options = parser.parse_args()

    accelerator = Accelerator()
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24)))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    data = DataLoader(TensorDataset(torch.rand(64, 2048)), batch_size=16)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    first = 0
    if options.resume:
        accelerator.load_state("state")
        first = 2
    if options.best:
        best = load_best(accelerator)
        accelerator.unwrap_model(model).load_state_dict(best["model"])
        first = best["epoch"] + 1
    for epoch in range(first, first + 2):
        for (batch,) in data:
            accelerator.backward(model(batch).square().mean())
            optimizer.step()
            optimizer.zero_grad()
        accelerator.save({"model": accelerator.unwrap_model(model).state_dict(), "epoch": epoch}, "best.pt")
    accelerator.save_state("state")


if __name__ == "__main__":
    main()
