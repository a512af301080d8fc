# SPDX-License-Identifier: Apache-2.0
"""Cross-validation as a script: the variables of one fold are there while the next one's model is made."""

import torch
from common import evaluate, make_loader, make_model, train

scores = []
for fold in range(3):
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    train(model, optimizer, make_loader())
    scores.append(evaluate(model, make_loader()))
print(max(scores))
