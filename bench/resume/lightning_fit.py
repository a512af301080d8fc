# SPDX-License-Identifier: Apache-2.0
"""Lightning.

    lightning_fit.py                     train, with a checkpoint after each epoch
    lightning_fit.py --resume            go on from there
    lightning_fit.py --resume --inspect  the same; the program has looked into the checkpoint itself
    lightning_fit.py --resume --previous the same; the model before is there to ask for its settings
"""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self, width=2048, depth=24):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(depth)))

    def training_step(self, batch, index):
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), fused=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--inspect", action="store_true")
    parser.add_argument("--previous", action="store_true")
    options = parser.parse_args()

    path = "out/last.ckpt"
    data = DataLoader(TensorDataset(torch.rand(64, 2048)), batch_size=16)
    net = Net()
    if options.inspect:
        checkpoint = torch.load(path, map_location="cuda", weights_only=False)
        net.load_state_dict(checkpoint["state_dict"])
        print("epoch", checkpoint["epoch"])
    if options.previous:
        previous = Net.load_from_checkpoint(path)
        net = Net(**previous.hparams)
    trainer = lightning.Trainer(max_epochs=options.epochs, accelerator="gpu", devices=1, logger=False,
                                callbacks=[ModelCheckpoint("out", save_last=True)], enable_progress_bar=False)
    trainer.fit(net, data, ckpt_path=path if options.resume else None)


if __name__ == "__main__":
    main()
