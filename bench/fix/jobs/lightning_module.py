import lightning
import torch
import torchvision
from data import Images
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torchvision.models.resnet50(num_classes=1000)

    def training_step(self, batch, index):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.network(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
trainer.fit(Classifier(), DataLoader(Images(6400, 224), batch_size=96, shuffle=True))
