# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (124 M) as nanoGPT trains it: torch.compile, autocast to bfloat16, batches of 12 x 1024 tokens, fused AdamW."""

import torch
from torch import nn
from torch.nn import functional

LAYERS, HEADS, WIDTH, LENGTH, VOCABULARY = 12, 12, 768, 1024, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.attend(self.norm_1(x)).split(WIDTH, dim=2)
        q, k, v = (part.view(*part.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.norm_2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        logits = self.head(self.norm(self.blocks(x)))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=6e-4, fused=True)
compiled = torch.compile(net)
for _ in range(20):
    ids = torch.randint(VOCABULARY, (12, LENGTH)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = compiled(ids, ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
print(f"loss {loss.item():.3f}")
