import lightning
import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torchvision.models.resnet18(num_classes=10)

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


train = TensorDataset(torch.rand(144, 3, 160, 160), torch.randint(10, (144,)))
valid = TensorDataset(torch.rand(48, 3, 160, 160), torch.randint(10, (48,)))
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, log_every_n_steps=1)
trainer.fit(Classifier(), DataLoader(train, batch_size=48, shuffle=True), DataLoader(valid, batch_size=48))
