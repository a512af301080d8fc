# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer: a ResNet-50 on made pictures, bf16-mixed, with validation, metrics and checkpoints."""

import lightning
import torch
import torchmetrics
import torchvision


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.rand(3, 224, 224), index % 1000


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet50()
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=1000)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        self.log("accuracy", self.accuracy(self.net(batch[0]), batch[1]), on_epoch=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


if __name__ == "__main__":
    trainer = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False)
    load = torch.utils.data.DataLoader
    trainer.fit(Classifier(), load(Pictures(512), 64, num_workers=1), load(Pictures(128), 64))
