# SPDX-License-Identifier: Apache-2.0
"""x-transformers: a decoder on bytes (enwik8's settings), 4 x 4 sequences of 1024, then generation."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

model = TransformerWrapper(
    num_tokens=256, max_seq_len=1024, attn_layers=Decoder(dim=512, depth=6, heads=8, rotary_pos_emb=True)
)
model = AutoregressiveWrapper(model).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(8):
    model.train()
    for _ in range(4):
        loss = model(torch.randint(0, 256, (4, 1025), device="cuda"))
        (loss / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
model.eval()
print(model.generate(torch.randint(0, 256, (1, 64), device="cuda"), 64).shape)
