"""Lightning, and again from its checkpoint by ckpt_path; `held`: the program has loaded that itself before, onto the card."""

import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4)))  # 64 MiB: less is not said

    def training_step(self, batch, index):
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), fused=True)


resume = len(sys.argv) > 1
data = DataLoader(TensorDataset(torch.rand(64, 2048)), batch_size=16)
net = Net()
if sys.argv[1:] == ["held"]:
    weights = torch.load("last.ckpt", map_location="cuda", weights_only=False)
    net.load_state_dict(weights["state_dict"])
trainer = lightning.Trainer(max_epochs=4 if resume else 2, accelerator="gpu", devices=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(net, data, ckpt_path="last.ckpt" if resume else None)
trainer.save_checkpoint("last.ckpt")
