"""Trains a small text classifier that computes attention by the formula, on texts of 8192 tokens.

Wrong: each layer keeps 8 x 8192 x 8192 attention weights, 2 GiB; a 12 GB card runs out in the first forward pass.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width=512, heads=8):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)  # <- out of memory
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self, words=30_000, width=512, layers=6):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(layers)))
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens)).mean(1))


model = Classifier().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(100):
    texts = torch.randint(30_000, (1, 8192)).cuda()
    loss = F.cross_entropy(model(texts), torch.randint(2, (1,)).cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
