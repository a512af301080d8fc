# SPDX-License-Identifier: Apache-2.0
"""open_clip: contrastive training of ViT-B/32 under bf16 autocast."""

import open_clip
import torch

model = open_clip.create_model("ViT-B-32", device="cuda").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loss_of = open_clip.ClipLoss()
for step in range(8):
    pictures = torch.rand(256, 3, 224, 224, device="cuda")
    words = open_clip.tokenize(["a made picture"] * 256).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of(*model(pictures, words)[:3])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, 4.6)
    print(step, loss.item(), flush=True)
