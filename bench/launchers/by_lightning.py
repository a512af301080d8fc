# SPDX-License-Identifier: Apache-2.0
"""Lightning's ddp strategy, which starts the other rank itself."""

import lightning
import torch
from torch import nn


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8)))

    def training_step(self, batch):
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.randn(1024, 2048))
    trainer = lightning.Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False)  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=64))
