# SPDX-License-Identifier: Apache-2.0
"""Apple's cut-cross-entropy with labels that were made on the card: it counts those that are not ignored and divides by them."""

import torch
from cut_cross_entropy import linear_cross_entropy

states = torch.randn(2048, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
weights = torch.randn(32000, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
optimizer = torch.optim.SGD([states, weights], lr=0.1)
for _ in range(3):
    labels = torch.randint(0, 32000, (2048,), device="cuda")
    linear_cross_entropy(states, weights, labels).backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
