# SPDX-License-Identifier: Apache-2.0
"""Whisper small by transformers: training on 30 s of sound with 128 tokens each, or generation in fp16."""

import argparse

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["train", "generate"])
parser.add_argument("--batch", type=int, default=4)
options = parser.parse_args()
config = WhisperConfig(
    vocab_size=51865, d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
    encoder_ffn_dim=3072, decoder_ffn_dim=3072, max_target_positions=448)  # fmt: skip
model = WhisperForConditionalGeneration(config)
if options.kind == "train":
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for step in range(8):
        sound = torch.randn(options.batch, 80, 3000, device="cuda")
        labels = torch.randint(0, 50000, (options.batch, 128), device="cuda")
        loss = model(input_features=sound, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item(), flush=True)
else:
    model = model.half().cuda().eval()
    sound = torch.randn(options.batch, 80, 3000, device="cuda", dtype=torch.float16)
    tokens = model.generate(sound, max_new_tokens=64, do_sample=False)
    print(tuple(tokens.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
