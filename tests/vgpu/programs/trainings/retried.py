# SPDX-License-Identifier: Apache-2.0
"""The next attempt is made inside of the except block, while the exception holds the one before."""

import torch
from common import make_loader, make_model, train


def attempt(batch):
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, make_loader(batch=batch))
    if batch > 32:
        raise ValueError("batch %d diverged" % batch)


try:
    attempt(64)
except ValueError:
    attempt(32)
