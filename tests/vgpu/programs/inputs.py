# 10,000 samples, one of them 8 times as long at 9,731, through loaders of several kinds; the batch of that one needs 2 GiB and more
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

COUNT, LATE, SHORT = 10000, 9731, 128


def length(i):
    return 8 * SHORT if i == LATE else SHORT // 2 + i % (SHORT // 2)


class Texts(Dataset):
    def __init__(self, count=COUNT, late=LATE):
        self.count, self.late = count, late

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        size = 8 * SHORT if i == self.late else SHORT // 2 + i % (SHORT // 2)
        return {"input_ids": torch.ones(size, dtype=torch.long), "labels": torch.ones(size, dtype=torch.long)}


def collate(rows):
    return {name: nn.utils.rnn.pad_sequence([row[name] for row in rows], batch_first=True) for name in rows[0]}


class Buckets(Sampler):
    """Batches of samples of similar length, in a random order."""

    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i])
        batches = [order[i:i + self.size] for i in range(0, len(order), self.size)]
        for i in torch.randperm(len(batches)).tolist():
            yield batches[i]

    def __len__(self):
        return -(-len(self.lengths) // self.size)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.layer = nn.Linear(64, 64)

    def forward(self, input_ids, labels=None, **rest):
        x = self.layer(self.embedding(input_ids))
        scores = x @ x.transpose(1, 2)  # length x length
        return {"loss": scores.softmax(-1).mean() + x.mean()}


def plain(**options):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        for batch in DataLoader(data, collate_fn=collate, **options):
            loss = model(batch["input_ids"].cuda())["loss"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def trainer(**options):
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments("out", per_device_train_batch_size=32, report_to=[], num_train_epochs=2, **options)
    Trainer(Model(), arguments, train_dataset=data, data_collator=collate).train()


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    run = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
    run.fit(Module(), DataLoader(data, batch_size=32, shuffle=True, collate_fn=collate))


class Volumes(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        size = 64 if i == 51 else 32
        return torch.zeros(1, size, size, size)


def evaluation():
    model = nn.Conv3d(1, 64, 3, padding=1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        for patch in DataLoader([torch.zeros(1, 16, 16, 16)] * 100, batch_size=2):
            model(patch.cuda()).mean().backward()
            optimizer.step()
        with torch.no_grad():
            for volume in DataLoader(Volumes(), batch_size=1):
                model(volume.cuda())


data = Texts()
if __name__ == "__main__":
    torch.manual_seed(0)
    kinds = {
        "plain": lambda: plain(batch_size=32, shuffle=True),
        "workers": lambda: plain(batch_size=32, shuffle=True, num_workers=2),
        "buckets": lambda: plain(batch_sampler=Buckets([length(i) for i in range(COUNT)], 32)),
        "trainer": trainer,
        "grouped": lambda: trainer(train_sampling_strategy="group_by_length"),
        "lightning": lightning,
        "evaluation": evaluation,
    }
    kinds[sys.argv[1]]()
    print("ended")
