# SPDX-License-Identifier: Apache-2.0
"""Cross-validation whose results keep each fold's model and optimizer."""

import torch
from common import evaluate, make_loader, make_model, train

results = []
for fold in range(5):
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, make_loader())
    score = evaluate(model, make_loader())
    results.append({"fold": fold, "score": score, "model": model, "optimizer": optimizer})
print(max(result["score"] for result in results))
