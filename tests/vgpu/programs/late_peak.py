"""Thirty-five steps; the peak comes at step 30, in a pass that begins with less memory than the ones before it: what it keeps
for backward is 32 MiB, and its backward works on 128 MiB."""

import torch

MIB = 1 << 20
weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)


class Late(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        work = torch.empty(128 * MIB // 4, device="cuda")
        return gradient + work[: gradient.numel()] * 0


def early():
    """64 MiB, which a product keeps."""
    return (weight * torch.ones(16 * MIB, device="cuda")).sum()


def late():
    kept = (weight * torch.ones(4 * MIB, device="cuda")).exp()  # 16 MiB for the product, 16 MiB for exp
    return Late.apply(kept).sum()


for step in range(1, 36):
    (late() if step >= 30 else early()).backward()
    optimizer.step()
    optimizer.zero_grad()
