# SPDX-License-Identifier: Apache-2.0
"""Trains one of models.py:

    train.py MODEL BATCH                 with this batch
    train.py MODEL accelerate START      accelerate looks for the largest batch that fits, from START downwards
    train.py MODEL lightning START       Lightning does, by doubling and bisection

The finders print "found N after M out-of-memories".
"""
import sys

import torch
from models import MODELS
from torch.utils.data import DataLoader, Dataset

STEPS = 4


class Samples(Dataset):
    """The same sample again and again."""

    def __init__(self, sample, count):
        self.sample, self.count = sample, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.sample


def to_device(batch):
    return [part.cuda() for part in batch] if isinstance(batch, (list, tuple)) else batch.cuda()


def train(name, size):
    model, optimizer_class, loss_of, sample = MODELS[name]()
    model.cuda().train()
    optimizer = optimizer_class(model.parameters(), lr=1e-4)
    for batch in DataLoader(Samples(sample, STEPS * size), batch_size=size):
        optimizer.zero_grad()
        loss_of(model, to_device(batch)).backward()
        optimizer.step()


def by_accelerate(name, start):
    from accelerate.utils import find_executable_batch_size

    tried = []

    @find_executable_batch_size(starting_batch_size=start)
    def attempt(size):
        tried.append(size)
        train(name, size)

    attempt()
    print("found %d after %d out-of-memories" % (tried[-1], len(tried) - 1))


def by_lightning(name, start):
    import lightning
    from lightning.pytorch.tuner import Tuner

    count = [0]
    model, optimizer_class, loss_of, sample = MODELS[name]()

    class Module(lightning.LightningModule):
        batch_size = start

        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            try:
                return loss_of(self.model, batch)
            except torch.OutOfMemoryError:
                count[0] += 1
                raise

        def backward(self, loss, *args, **kwargs):
            try:
                super().backward(loss, *args, **kwargs)
            except torch.OutOfMemoryError:
                count[0] += 1
                raise

        def configure_optimizers(self):
            return optimizer_class(self.parameters(), lr=1e-4)

        def train_dataloader(self):
            return DataLoader(Samples(sample, STEPS * self.batch_size), batch_size=self.batch_size)

    trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False)  # fmt: skip
    found = Tuner(trainer).scale_batch_size(Module(), mode="binsearch", steps_per_trial=STEPS, init_val=start)
    print("found %d after %d out-of-memories" % (found, count[0]))


if __name__ == "__main__":
    how = {"accelerate": by_accelerate, "lightning": by_lightning}
    if sys.argv[2] in how:
        how[sys.argv[2]](sys.argv[1], int(sys.argv[3]))
    else:
        train(sys.argv[1], int(sys.argv[2]))
