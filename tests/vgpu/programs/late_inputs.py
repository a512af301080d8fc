# Twelve threads in which the input that kills comes late, each as a small program of its kind: what a
# step takes depends on one sample's length, and the long one stands far behind. usage: late_inputs.py NAME
import sys

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler, Subset



class Samples(Dataset):
    """Samples that make(length) makes; one of them is long."""

    def __init__(self, count, short, long, late, make):
        self.count, self.short, self.long, self.late, self.make = count, short, long, late, make

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        return self.make(self.long if i == self.late else self.short + i % 8)


def tokens(n):
    return torch.ones(n, dtype=torch.long)


def pad(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class Reader(nn.Module):
    """Scores of each token with each."""

    def __init__(self, width=64):
        super().__init__()
        self.embedding, self.layer = nn.Embedding(1000, width), nn.Linear(width, width)

    def forward(self, ids):
        x = self.layer(self.embedding(ids))
        return (x @ x.transpose(1, 2)).softmax(-1).mean() + x.mean()


def train(model, loader, loss, epochs=2):
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        for batch in loader:
            loss(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()


# ---- texts ----


def t5_mid_run():  # transformers#11388
    data = Samples(4000, 60, 2000, 3111, tokens)
    train(Reader(), DataLoader(data, 16, shuffle=True, collate_fn=pad), lambda model, ids: model(ids.cuda()))


def preference_pairs():  # trl#1619, trl#1626
    data = Samples(3000, 60, 1500, 2222, lambda n: {"chosen_input_ids": tokens(n), "rejected_input_ids": tokens(n // 2)})

    def collate(rows):
        return {name: pad([row[name] for row in rows]) for name in rows[0]}

    def loss(model, batch):
        return model(batch["chosen_input_ids"].cuda()) - model(batch["rejected_input_ids"].cuda())

    train(Reader(), DataLoader(data, 16, shuffle=True, collate_fn=collate), loss)


def lora_seven_percent_in():  # LlamaFactory#3668: 7 % in, one sample of a subset; gradients are accumulated
    data = Subset(Samples(6000, 60, 2500, 5000, tokens), range(1000, 6000))
    model = Reader().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for i, ids in enumerate(DataLoader(data, 8, shuffle=True, collate_fn=pad)):
        (model(ids.cuda()) / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


# ---- speech ----


class Duration(Sampler):
    """Batches of as many samples as fit so many frames, as speech toolkits make them."""

    def __init__(self, lengths, frames):
        self.batches, batch = [], []
        for i, length in enumerate(lengths):
            if batch and (len(batch) + 1) * length > frames:
                self.batches.append(batch)
                batch = []
            batch.append(i)
        self.batches.append(batch)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        yield from self.batches


def speech_batches():  # icefall#910: batches by duration, one long recording
    data = Samples(1500, 100, 3000, 1234, lambda n: torch.zeros(n, 80))
    lengths = [3000 if i == 1234 else 100 + i % 8 for i in range(1500)]
    loader = DataLoader(data, batch_sampler=Duration(lengths, 3200), collate_fn=pad)
    layer = nn.Linear(80, 64)
    train(layer, loader, lambda model, x: (lambda h: (h @ h.transpose(1, 2)).softmax(-1).mean())(model(x.cuda())), 1)


def overlong_text():  # icefall#521: RNN-T; frames are alike, one text is overlong
    data = Samples(1000, 8, 800, 777, lambda n: (torch.zeros(200, 80), torch.ones(n, dtype=torch.long)))
    net = nn.ModuleDict({"sound": nn.Linear(80, 64), "text": nn.Embedding(500, 64)})

    def loss(model, batch):  # every frame with every token
        sound, text = model["sound"](batch[0].cuda()), model["text"](batch[1].cuda())
        return (sound[:, :, None] + text[:, None]).tanh().mean()

    train(net, DataLoader(data, 8, shuffle=True, collate_fn=lambda rows: (pad([r[0] for r in rows]), pad([r[1] for r in rows]))), loss)


def speech_synthesis():  # vall-e#110: late in a long epoch
    data = Samples(9000, 50, 2500, 8888, lambda n: {"tokens": tokens(n), "text": "a" * 20})
    loader = DataLoader(data, 8, shuffle=True, collate_fn=lambda rows: pad([row["tokens"] for row in rows]))
    train(Reader(), loader, lambda model, ids: model(ids.cuda()))


# ---- graphs ----


class Graph:
    def __init__(self, nodes):
        self.x, self.num_nodes = torch.zeros(nodes, 16), nodes


def graphs():  # PyG#1113: graphs of 10 to 10,000 nodes, joined to one
    data = Samples(2000, 10, 10000, 1717, Graph)
    loader = DataLoader(data, 16, shuffle=True, collate_fn=lambda rows: torch.cat([row.x for row in rows]))
    layer = nn.Linear(16, 64)
    train(layer, loader, lambda model, x: (lambda h: (h @ h.t()).mean())(model(x.cuda())))


# ---- pictures ----


def boxes(count, size, late, most):
    return Samples(count, size, most, late, lambda n: (torch.zeros(3, 64, 64), {"boxes": torch.zeros(n, 4), "labels": tokens(n)}))


def overlaps(model, batch):
    """IoU of 60,000 anchors with all boxes of a picture, as an assigner makes it."""
    pictures, targets = batch
    loss = model(torch.stack(pictures).cuda()).mean()
    anchors = torch.zeros(60000, 4, device="cuda")
    for target in targets:
        near = torch.minimum(anchors[:, None, 2:], target["boxes"].cuda()[None, :, 2:])
        loss = loss + (near[..., 0] * near[..., 1]).max() * 0
    return loss


def detection(data):
    loader = DataLoader(data, 4, shuffle=True, collate_fn=lambda rows: tuple(zip(*rows)))
    train(nn.Conv2d(3, 8, 3), loader, overlaps)


def faces():  # mmdetection#188: RetinaNet on faces
    detection(boxes(1600, 4, 1500, 700))


def five_hundred_boxes():  # mmdetection#1581: more than 500 boxes in a picture
    detection(boxes(1600, 4, 901, 640))


def aerial():  # AerialDetection#8
    detection(boxes(1200, 10, 1111, 900))


def instance_masks():  # detectron2#438: iSAID, a mask for each object
    def make(n):
        return torch.zeros(3, 64, 64), {"boxes": torch.zeros(n, 4), "masks": torch.zeros(n, 64, 64, dtype=torch.bool)}

    def loss(model, batch):
        pictures, targets = batch
        found = model(torch.stack(pictures).cuda()).mean()
        for target in targets:
            found = found + target["masks"].cuda().float().repeat_interleave(20, 0).mean() * 0
        return found

    data = Samples(800, 4, 800, 700, make)
    train(nn.Conv2d(3, 8, 3), DataLoader(data, 4, shuffle=True, collate_fn=lambda rows: tuple(zip(*rows))), loss)


def volumes():  # MONAI-contrib#22: the 52nd of 60 volumes; in order, without gradients
    data = Samples(60, 24, 160, 51, lambda n: {"image": torch.zeros(1, n, n, n)})
    net = nn.Conv3d(1, 32, 3, padding=1).cuda()
    with torch.no_grad():
        for batch in DataLoader(data, batch_sampler=BatchSampler(range(60), 1, False)):
            net(batch["image"].cuda())


NAMES = ("t5_mid_run", "preference_pairs", "lora_seven_percent_in", "speech_batches", "overlong_text", "speech_synthesis", "graphs",
         "faces", "five_hundred_boxes", "aerial", "instance_masks", "volumes")
if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    print("ended")
