# SPDX-License-Identifier: Apache-2.0
"""An Optuna study whose trials keep their models."""

import optuna
import torch
from common import evaluate, make_loader, make_model, train


def objective(trial):
    rate = trial.suggest_float("rate", 1e-5, 1e-2, log=True)
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    train(model, optimizer, make_loader())
    trial.set_user_attr("model", model)
    return evaluate(model, make_loader())


study = optuna.create_study()
study.optimize(objective, n_trials=6)
print(study.best_value)
