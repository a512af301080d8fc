# SPDX-License-Identifier: Apache-2.0
"""Lightning over four epochs of 10,000 batches. Arguments: iterable, or options of Trainer as name=number."""

import os
import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield (torch.zeros(256),)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
        self.validated = 0

    def training_step(self, batch, index):
        return self.net(batch[0]).sum()

    def validation_step(self, batch, index):
        self.log("loss", self.net(batch[0]).sum())

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.validated += 1

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


options = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
data = TensorDataset(torch.zeros(80000, 256))
train = DataLoader(Endless() if "iterable" in sys.argv else data, batch_size=8)
trainer = lightning.Trainer(max_epochs=4, accelerator="gpu", devices=1, logger=False, enable_progress_bar=False,
                            enable_model_summary=False, default_root_dir=".",
                            **{name: float(value) if "." in value else int(value) for name, value in options.items()})
module = Module()
trainer.fit(module, train, DataLoader(data, batch_size=8))
print("validated", module.validated, "saved", len(os.listdir("checkpoints")))
