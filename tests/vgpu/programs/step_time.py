# SPDX-License-Identifier: Apache-2.0
"""Trains a transformer of 12 blocks for four steps, and prints what the virtual GPU counted of them."""

import ctypes
import os

import torch
from torch import nn

BATCH, LENGTH, STEPS = 8, 512, 4


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


def main():
    torch.manual_seed(0)
    model = Transformer().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 8192, (STEPS * BATCH, LENGTH))
    for inputs, labels in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens, tokens), batch_size=BATCH):
        outputs = model(inputs.cuda())
        loss = nn.functional.cross_entropy(outputs.flatten(0, 1), labels.cuda().flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tell():
    path = os.path.join(os.environ["TMPDIR"], "work.tsv")
    core = ctypes.CDLL(os.path.join(os.environ["TONNAGE_LIB"], "libtonnage-vgpu.so"))
    core.tn_vgpu_work_write(path.encode())
    print(open(path).read())


main()
tell()
