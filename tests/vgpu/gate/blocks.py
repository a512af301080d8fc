# SPDX-License-Identifier: Apache-2.0
"""A library that somebody else uses. With KEEP_MORE its block keeps one tensor more than it needs."""

import os

import torch

KEEP_MORE = bool(os.environ.get("KEEP_MORE"))


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        y = self.linear(x)
        if KEEP_MORE:
            self.kept = y * 2  # one more
        return y.relu()
