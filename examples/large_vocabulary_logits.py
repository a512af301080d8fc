"""Trains a small language model with a vocabulary of 256,000 words.

Wrong: the logits of 8 x 1024 words take 7.8 GiB, their log-softmax as much again; a 12 GB card runs out at the loss.
With --batch 4 it runs out in the backward of that line, which needs as much a third time.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
options = parser.parse_args()


class LanguageModel(nn.Module):
    def __init__(self, words=256_000, width=512, layers=6):
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens, mask):
        return self.head(self.layers(self.words(tokens), mask=mask, is_causal=True))


model = LanguageModel().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
mask = nn.Transformer.generate_square_subsequent_mask(1024, device="cuda")

for step in range(100):
    texts = torch.randint(256_000, (options.batch, 1025)).cuda()
    logits = model(texts[:, :-1], mask)
    loss = F.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())  # <- out of memory
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
