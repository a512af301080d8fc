# SPDX-License-Identifier: Apache-2.0
"""A search whose trainers refer to themselves: nobody holds them, and Python has not collected them yet."""

import torch
from common import evaluate, make_loader, make_model, train


class Trainer:
    def __init__(self):
        self.model = make_model().cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.evaluate = lambda: evaluate(self.model, make_loader())


def score_of_fold(fold):
    trainer = Trainer()
    train(trainer.model, trainer.optimizer, make_loader())
    return trainer.evaluate()


print(max(score_of_fold(fold) for fold in range(4)))
