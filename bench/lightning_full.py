"""Trains ResNet-50 by Lightning's Trainer, with its defaults: made-up pictures by torchvision's FakeData, a validation,
and a checkpoint with the optimizer's state at the end of each epoch.
"""
import lightning
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torchvision.models.resnet50(num_classes=1000)

    def training_step(self, batch, index):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.network(images), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        images, labels = batch
        self.log("valid", torch.nn.functional.cross_entropy(self.network(images), labels))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


data = torchvision.datasets.FakeData(192, (3, 224, 224), 1000, transforms.ToTensor())
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, log_every_n_steps=1)
trainer.fit(Classifier(), DataLoader(data, batch_size=48, shuffle=True), DataLoader(data, batch_size=48))
