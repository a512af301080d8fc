# SPDX-License-Identifier: Apache-2.0
"""A search over batch sizes that keeps the errors of those that failed."""

import torch
from common import WIDTH, make_loader, make_model, train


def attempt(batch):
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    loader = make_loader(batch=batch)
    train(model, optimizer, loader)
    if batch > 16:
        raise ValueError("batch %d diverged" % batch)


failures = {}
for batch in (128, 64, 32, 16):
    try:
        attempt(batch)
    except ValueError as error:
        failures[batch] = error
print(sorted(failures))
