"""Cross-validation whose results keep each fold's model and optimizer. One fold fits a 12 GB card; the third has no room beside the two before it."""

import torch
from model import GPT
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

FOLDS = 5
data = TensorDataset(torch.randint(0, 1000, (60, 256)))


def train_fold(fold):
    chosen = [index for index in range(len(data)) if index % FOLDS != fold]
    model = GPT(words=1000, length=256).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        for (tokens,) in DataLoader(Subset(data, chosen), batch_size=6):
            tokens = tokens.cuda()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
    return model, optimizer, loss.item()


results = []
for fold in range(FOLDS):
    model, optimizer, loss = train_fold(fold)
    results.append({"fold": fold, "loss": loss, "model": model, "optimizer": optimizer})  # <- the mistake
print(sum(result["loss"] for result in results) / FOLDS)
