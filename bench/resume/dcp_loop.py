# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint in one process.

    dcp_loop.py                   train, and write shards/
    dcp_loop.py --resume          go on from there: read into the tensors that the model has
    dcp_loop.py --resume --apart  the same, read into tensors of their own
"""

import argparse

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def resume(model, optimizer, apart):
    weights, state = get_state_dict(model, optimizer)
    if apart:
        weights = {name: torch.empty_like(tensor) for name, tensor in weights.items()}
    loaded = {"model": weights, "optimizer": state, "epoch": 0}
    dcp.load(loaded, checkpoint_id="shards")
    set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    return loaded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--apart", action="store_true")
    options = parser.parse_args()

    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    first = 0
    if options.resume:
        loaded = resume(model, optimizer, options.apart)
        first = loaded["epoch"] + 1
    for epoch in range(first, first + 2):
        for step in range(4):
            model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        weights, state = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": state, "epoch": epoch}, checkpoint_id="shards")


if __name__ == "__main__":
    main()
