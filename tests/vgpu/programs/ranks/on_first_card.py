# SPDX-License-Identifier: Apache-2.0
"""Each rank holds 4 MiB, and with them a context, on the first card, beside its model on its own."""

import os

import torch

torch.distributed.init_process_group("nccl")
kept = torch.zeros(1 << 20, device="cuda:0")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8192, 8192).cuda())
for _ in range(3):
    model(torch.zeros(8, 8192, device="cuda")).sum().backward()
torch.distributed.destroy_process_group()
