"""torch.distributed.checkpoint in one process: loads into the tensors that are there."""

import sys

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
if len(sys.argv) > 1:
    weights, state = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id="shards")
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
for _ in range(3):
    model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
if len(sys.argv) == 1:
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id="shards")
