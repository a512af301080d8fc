# SPDX-License-Identifier: Apache-2.0
"""A small GPT in one file, in the manner of nanoGPT.

    nanogpt.py                       train, and write out/ckpt.pt
    nanogpt.py --init_from=resume    go on from there
"""

import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--init_from", default="scratch", choices=["scratch", "resume", "resume_on_device"])
parser.add_argument("--max_iters", type=int, default=20)
options = parser.parse_args()

out_dir, device = "out", "cuda"
n_layer, n_head, n_embd, vocab_size, block_size, batch_size = 8, 16, 1024, 8192, 256, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=False)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.ln_2 = nn.LayerNorm(n_embd, bias=False)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd, bias=False), nn.GELU(), nn.Linear(4 * n_embd, n_embd, bias=False))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, n_head, C // n_head).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).split(n_embd, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd, bias=False)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


def get_batch():
    data = torch.randint(vocab_size, (batch_size, block_size + 1))
    return data[:, :-1].contiguous().to(device), data[:, 1:].contiguous().to(device)


os.makedirs(out_dir, exist_ok=True)
ckpt_path = os.path.join(out_dir, "ckpt.pt")
iter_num = 0
model = GPT()
if options.init_from != "scratch":
    print(f"Resuming training from {out_dir}")
    if options.init_from == "resume_on_device":
        checkpoint = torch.load(ckpt_path, map_location=device)
    else:
        checkpoint = torch.load(ckpt_path, map_location="cpu")
    state_dict = checkpoint["model"]
    unwanted_prefix = "_orig_mod."
    for k, v in list(state_dict.items()):
        if k.startswith(unwanted_prefix):
            state_dict[k[len(unwanted_prefix):]] = state_dict.pop(k)
    model.load_state_dict(state_dict)
    iter_num = checkpoint["iter_num"]
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
if options.init_from != "scratch":
    optimizer.load_state_dict(checkpoint["optimizer"])
checkpoint = None  # free up memory

while iter_num < options.max_iters:
    X, Y = get_batch()
    loss = model(X, Y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num % 10 == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iter_num}, ckpt_path)
