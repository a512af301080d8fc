# SPDX-License-Identifier: Apache-2.0
"""Trains a transformer of 12 blocks for four steps; for the time of a step under changes.

    step_time.py [MODEL [BATCH [LENGTH]]]     MODEL: gpt (default), or a classification model of torchvision
"""

import sys

import torch
from torch import nn

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt"
BATCH = int(sys.argv[2]) if len(sys.argv) > 2 else 8
LENGTH = int(sys.argv[3]) if len(sys.argv) > 3 else 512


class Block(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.heads = width // 64
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.into(self.one(x)).view(batch, length, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.back(nn.functional.gelu(self.wide(self.two(x))))


class Transformer(nn.Module):
    def __init__(self, words=8192, width=768, blocks=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def data():
    if MODEL == "gpt":
        tokens = torch.randint(0, 8192, (4 * BATCH, LENGTH))
        return torch.utils.data.TensorDataset(tokens, tokens)
    return torch.utils.data.TensorDataset(torch.zeros(4 * BATCH, 3, 224, 224), torch.zeros(4 * BATCH, dtype=torch.long))


def build():
    if MODEL == "gpt":
        return Transformer()
    import torchvision

    return torchvision.models.get_model(MODEL, weights=None)


def main():
    torch.manual_seed(0)
    model = build().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, labels in torch.utils.data.DataLoader(data(), batch_size=BATCH):
        outputs = model(inputs.cuda())
        loss = nn.functional.cross_entropy(outputs.flatten(0, -2), labels.cuda().flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
