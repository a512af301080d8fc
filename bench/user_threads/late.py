# SPDX-License-Identifier: Apache-2.0
"""Programs in which the input that kills comes late: late.py NAME [usual] (table.toml says which thread). `usual`: the late
input is as large as the others are, and the program has to fit."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

USUAL = "usual" in sys.argv


class Samples(Dataset):
    """count samples that make(i, size) makes; `late` has the size `large`, the others one of `sizes`."""

    def __init__(self, count, sizes, late, large, make):
        self.count, self.sizes, self.late, self.large, self.make = count, sizes, late, large, make

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        return self.make(i, self.large if i == self.late and not USUAL else self.sizes[i % len(self.sizes)])


def ids(n):
    return torch.ones(n, dtype=torch.long)


def padded(rows, value=0):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)


def train(model, loader, loss, epochs=3, kind=torch.optim.AdamW):
    optimizer = kind([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            loss(batch).backward()
            optimizer.step()


# ---- texts ----


def t5():
    """Summaries by Trainer; one article is long."""
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(T5Config(d_model=256, d_ff=512, num_layers=4, num_heads=8, d_kv=32, vocab_size=32128, decoder_start_token_id=0))
    data = Samples(4000, range(40, 64), 3107, 2500, lambda i, n: {"input_ids": ids(n), "attention_mask": ids(n), "labels": ids(16)})

    def collate(rows):
        return {name: padded([row[name] for row in rows], -100 if name == "labels" else 0) for name in rows[0]}

    arguments = Seq2SeqTrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=2, report_to=[], save_strategy="no")
    Seq2SeqTrainer(model, arguments, train_dataset=data, data_collator=collate).train()


def dpo():
    """A policy and its reference on chosen and rejected answers, in one forward pass."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=32000)
    policy, reference = GPT2LMHeadModel(config).cuda(), GPT2LMHeadModel(config).cuda().eval()
    data = Samples(2500, range(20, 32), 1720, 640, lambda i, n: {"prompt": "why?", "chosen_input_ids": ids(n), "rejected_input_ids": ids(n // 2)})

    def collate(rows):
        return padded([row["chosen_input_ids"] for row in rows] + [row["rejected_input_ids"] for row in rows])

    def scores(model, tokens):
        logits = model(tokens).logits[:, :-1]
        return logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0].sum(-1).chunk(2)

    def loss(tokens):
        tokens = tokens.cuda()
        chosen, rejected = scores(policy, tokens)
        with torch.no_grad():
            chosen_before, rejected_before = scores(reference, tokens)
        return -nn.functional.logsigmoid(0.1 * (chosen - rejected - chosen_before + rejected_before)).mean()

    train(policy, DataLoader(data, 8, shuffle=True, collate_fn=collate), loss)


# ---- speech ----


class Transducer(nn.Module):
    """A joiner of each frame with each token, over a small vocabulary."""

    def __init__(self, vocabulary=256):
        super().__init__()
        self.sound, self.text, self.joiner = nn.Linear(80, 128), nn.Embedding(vocabulary, 128), nn.Linear(128, vocabulary)

    def forward(self, sound, text):
        joined = self.sound(sound[:, ::4])[:, :, None] + self.text(text)[:, None]
        return self.joiner(joined.tanh()).log_softmax(-1)[..., 0].mean()


def cut(i, tokens):
    return {"features": torch.zeros(600 + i % 200, 80), "tokens": ids(tokens)}


def cuts(rows):
    return padded([row["features"] for row in rows]), padded([row["tokens"] for row in rows])


class ByDuration(Sampler):
    """Batches of so many frames, of cuts that are alike in length."""

    def __init__(self, durations, most):
        self.durations, self.most = durations, most
        self.batches, batch = [], []
        for i in sorted(range(len(durations)), key=durations.__getitem__):
            if batch and (len(batch) + 1) * durations[i] > most:
                self.batches.append(batch)
                batch = []
            batch.append(i)
        self.batches.append(batch)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for i in torch.randperm(len(self.batches)).tolist():
            yield self.batches[i]


def scanned():
    """The batches with the longest cuts and with most cuts are tried before training; the worst has a cut with much text."""
    model = Transducer().cuda()
    data = Samples(3000, range(20, 30), 1234, 500, cut)
    sampler = ByDuration([600 + i % 200 for i in range(3000)], 6400)
    for batch in (max(sampler.batches, key=len), sampler.batches[-1]):
        sound, text = cuts([data[i] for i in batch])
        model(sound.cuda(), text.cuda()).backward()
        model.zero_grad()
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=cuts)
    train(model, loader, lambda batch: model(batch[0].cuda(), batch[1].cuda()))


def overlong_text():
    """Two workers; a recording like the others with a text that is far too long."""
    model = Transducer().cuda()
    data = Samples(1200, range(20, 30), 887, 700, lambda i, n: (torch.zeros(600, 80), ids(n), "speaker %d" % i))
    loader = DataLoader(data, 8, shuffle=True, num_workers=2, collate_fn=lambda rows: (padded([row[0] for row in rows]), padded([row[1] for row in rows])))
    train(model, loader, lambda batch: model(batch[0].cuda(), batch[1].cuda()))


# ---- graphs and points ----


class Graph:
    def __init__(self, nodes, degree=8):
        self.num_nodes = nodes
        self.x, self.edge_index = torch.zeros(nodes, 16), torch.zeros(2, degree * nodes, dtype=torch.long)


class Attention(nn.Module):
    """Weights by edge."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 64), nn.Linear(64, 1)

    def forward(self, x, edges):
        return self.attend(self.inner(x), edges)

    def attend(self, x, edges):
        source, target = x[edges[0]], x[edges[1]]
        weights = nn.functional.leaky_relu(source + target)
        return torch.zeros_like(x).index_add(0, edges[1], weights * source)


def graphs():
    """Graphs of very different sizes, joined to one by the loader."""
    model = Attention().cuda()
    data = Samples(2000, range(10, 200), 1313, 200000, lambda i, n: Graph(n))

    def collate(rows):
        return torch.cat([row.x for row in rows]), torch.cat([row.edge_index for row in rows], 1)

    train(model, DataLoader(data, 32, shuffle=True, collate_fn=collate), lambda batch: model(batch[0].cuda(), batch[1].cuda()).mean())


def rare_batch():
    """Six large clouds of points among 2,000: two of them seldom come together, and one fits."""
    import lightning

    large = {171, 503, 822, 1240, 1555, 1901}

    class Cloud:
        def __init__(self, points):
            self.x, self.num_nodes = torch.zeros(points, 64), points

    class Clouds(Dataset):
        def __len__(self):
            return 2000

        def __getitem__(self, i):
            return Cloud(200000 if i in large and not USUAL else 1000)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

        def training_step(self, batch, number):
            return self.net(batch["points"]).mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    loader = DataLoader(Clouds(), 16, shuffle=True, collate_fn=lambda rows: {"points": torch.cat([row.x for row in rows])})
    trainer = lightning.Trainer(max_epochs=80, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
    trainer.fit(Module(), loader)


# ---- volumes ----


def sliding_window(net, volume, classes, size=32):
    """Predictions of windows, put together on the volume's card."""
    whole = torch.zeros(1, classes, *volume.shape[2:], device=volume.device)
    count = torch.zeros(1, 1, *volume.shape[2:], device=volume.device)
    starts = [range(0, max(1, extent - size + 1), size) for extent in volume.shape[2:]]
    for x in starts[0]:
        for y in starts[1]:
            for z in starts[2]:
                at = (slice(None), slice(None), slice(x, x + size), slice(y, y + size), slice(z, z + size))
                whole[at] += net(volume[at])
                count[at] += 1
    return whole / count


def volumes():
    """Training on patches, and a validation of whole volumes after each epoch: the 52nd is large."""
    net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 14, 1)).cuda()
    patches = DataLoader([torch.zeros(1, 32, 32, 32)] * 40, 2, shuffle=True)
    whole = DataLoader(Samples(60, [64, 96], 51, 320, lambda i, n: {"image": torch.zeros(1, n, n, n), "name": "case %d" % i}), 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(10):
        for patch in patches:
            optimizer.zero_grad()
            net(patch.cuda()).square().mean().backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for row in whole:
                sliding_window(net, row["image"].cuda(), 14).argmax(1).cpu()
        net.train()


def stitched():
    """Inference over two volumes: 32 classes of the second one do not fit."""
    net = nn.Conv3d(1, 32, 3, padding=1).cuda().eval()
    data = Samples(2, [96], 1, 288, lambda i, n: {"image": torch.zeros(1, n, n, n), "label": "liver"})
    with torch.no_grad():
        for row in DataLoader(data, batch_size=1, shuffle=False):
            sliding_window(net, row["image"].cuda(), 32, 96).sigmoid().cpu()


# ---- pictures ----


def targets(n, size=320):
    corner = torch.zeros(n, 2)
    return {"boxes": torch.cat([corner, corner + size / 2], 1), "labels": ids(n)}


def detect(model, data):
    def loss(batch):
        pictures = [picture.cuda() for picture, _ in batch]
        return sum(model(pictures, [{name: each.cuda() for name, each in target.items()} for _, target in batch]).values())

    train(model.cuda(), DataLoader(data, 2, shuffle=True, collate_fn=list), loss, kind=torch.optim.SGD)


def faces():
    """torchvision's RetinaNet; one picture shows a crowd, and each of its faces is compared with each anchor."""
    from torchvision.models.detection import retinanet_resnet50_fpn

    model = retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=2, min_size=320, max_size=320)
    detect(model, Samples(1500, range(1, 9), 1212, 5000, lambda i, n: (torch.zeros(3, 320, 320), targets(n))))


def masks():
    """torchvision's Mask R-CNN; one picture has very many objects, each with its mask."""
    from torchvision.models.detection import maskrcnn_resnet50_fpn

    model = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=16, min_size=512, max_size=512)

    def make(i, n):
        return torch.zeros(3, 512, 512), {**targets(n), "masks": torch.zeros(n, 512, 512, dtype=torch.uint8)}

    detect(model, Samples(600, range(1, 9), 417, 6000, make))


def mask_loss(kernels, features, objects, positives=13):
    """A mask at full size of each positive: 13 for each object."""
    logits = torch.einsum("pc,chw->phw", kernels[: objects * positives], features)[None]
    return nn.functional.interpolate(logits, scale_factor=8).sigmoid().mean()


def all_positives():
    """An instance segmenter whose assigner gives each object 13 positives."""
    net = nn.Conv2d(3, 8, 8, stride=8).cuda()
    kernels = torch.zeros(8000, 8, device="cuda")
    data = Samples(1000, range(1, 8), 409, 160, lambda i, n: {"img": torch.zeros(3, 640, 640), "gt_bboxes": torch.zeros(n, 4)})

    def loss(rows):
        features = net(torch.stack([row["img"] for row in rows]).cuda())
        return sum(mask_loss(kernels, each, len(row["gt_bboxes"])) for each, row in zip(features, rows)) / len(rows)

    train(net, DataLoader(data, 4, shuffle=True, collate_fn=list), loss)


def assign(anchors, boxes):
    """How each box of each picture, padded to the most of the batch, fits each anchor."""
    inside = torch.cat([anchors[None, None] - boxes[:, :, None, :2], boxes[:, :, None, 2:] - anchors[None, None]], -1)
    return (inside.amin(-1) > 0).float().mean()


def joined_boxes(rows):
    """Pictures, and all boxes with the number of their picture, as Ultralytics joins them."""
    boxes = [torch.cat([torch.full((len(each), 1), float(i)), each], 1) for i, (_, each) in enumerate(rows)]
    return torch.stack([picture for picture, _ in rows]), torch.cat(boxes), [len(each) for each in boxes]


def yolo_loss(net, anchors, batch):
    pictures, boxes, counts = batch
    boxes = boxes.cuda()
    each = nn.utils.rnn.pad_sequence(list(boxes[:, 1:5].split(counts)), batch_first=True)
    return net(pictures.cuda()).mean() + assign(anchors, each) * 0


def more_objects():
    """One picture with many objects: the boxes of all pictures of its batch are padded to as many."""
    net, anchors = nn.Conv2d(3, 32, 3, stride=2).cuda(), torch.zeros(8400, 2, device="cuda")
    data = Samples(2400, range(2, 20), 1777, 900, lambda i, n: (torch.zeros(3, 320, 320), torch.zeros(n, 5)))
    train(net, DataLoader(data, 16, shuffle=True, collate_fn=joined_boxes), lambda batch: yolo_loss(net, anchors, batch))


def probed():
    """The batch is chosen by trying empty pictures; then a mosaic brings more objects than were tried."""
    net, anchors = nn.Conv2d(3, 32, 3, stride=2).cuda(), torch.zeros(8400, 2, device="cuda")
    pictures = Samples(2000, range(2, 10), 1500, 2500, lambda i, n: torch.zeros(n, 5))

    class Mosaic(Dataset):
        def __len__(self):
            return len(pictures)

        def __getitem__(self, i):
            others = torch.randint(len(pictures), (3,)).tolist()
            return torch.zeros(3, 320, 320), torch.cat([pictures[each] for each in (i, *others)])

    taken = {}
    for size in (4, 8, 16):
        yolo_loss(net, anchors, (torch.zeros(size, 3, 320, 320), torch.zeros(size, 6), [1] * size)).backward()
        taken[size] = torch.cuda.max_memory_reserved()
        net.zero_grad()
    each = max((taken[16] - taken[4]) / 12, 1 << 20)
    free = torch.cuda.mem_get_info()[0]
    batch = min(32, int(0.6 * free / each))
    print("batch", batch)
    train(net, DataLoader(Mosaic(), batch, shuffle=True, collate_fn=joined_boxes), lambda batch: yolo_loss(net, anchors, batch))


class Vision(nn.Module):
    """Patches of one picture at its own resolution, as vision language models read them."""

    def __init__(self, width=256):
        super().__init__()
        self.patches, self.layer = nn.Linear(588, width), nn.TransformerEncoderLayer(width, 4, 1024, batch_first=True)

    def forward(self, picture):
        height, width = (each // 14 * 14 for each in picture.shape[1:])
        patches = picture[:, :height, :width].float().reshape(3, height // 14, 14, width // 14, 14).permute(1, 3, 0, 2, 4).reshape(1, -1, 588)
        return self.layer(self.patches(patches)).mean()


def large_picture():
    """One picture of 67 megapixels in a set of small ones."""
    model = Vision().cuda()

    def make(i, n):
        return {"input_ids": ids(64 + i % 8), "pixel_values": torch.zeros(3, n, n, dtype=torch.uint8)}

    data = Samples(900, [224, 336, 448], 619, 8192, make)
    loader = DataLoader(data, 2, shuffle=True, collate_fn=list)
    train(model, loader, lambda rows: sum(model(row["pixel_values"].cuda()) for row in rows))


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    print("ended")
