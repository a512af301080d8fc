# SPDX-License-Identifier: Apache-2.0
"""One training of published.csv, for four steps; prints what the virtual GPU counted of them. Run by run.py.

    job.py MODEL BATCH PRECISION [checkpoint] [accumulate] [adafactor] [offload] [nhwc]
"""

import contextlib
import ctypes
import os
import sys

import torch
from torch import nn

STEPS, LENGTH = 4, 512


class Bert(nn.Module):
    """bert-large or bert-base as a classifier, from its configuration alone."""

    def __init__(self, width, layers, heads, length):
        import transformers

        super().__init__()
        config = transformers.BertConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                                         intermediate_size=4 * width, attn_implementation="eager")  # fmt: skip
        self.model, self.length = transformers.BertForSequenceClassification(config), length

    def checkpoint(self):
        self.model.gradient_checkpointing_enable()

    def loss(self, batch):
        tokens = torch.randint(0, 30000, (batch, self.length), device="cuda")
        return self.model(input_ids=tokens, labels=torch.zeros(batch, dtype=torch.long, device="cuda")).loss


class Vision(nn.Module):
    def __init__(self, name, nhwc):
        import torchvision

        super().__init__()
        self.format = torch.channels_last if nhwc else torch.contiguous_format
        self.model = torchvision.models.get_model(name, weights=None).to(memory_format=self.format)

    def loss(self, batch):
        images = torch.randn(batch, 3, 224, 224, device="cuda").contiguous(memory_format=self.format)
        return nn.functional.cross_entropy(self.model(images), torch.zeros(batch, dtype=torch.long, device="cuda"))


def build(name, options):
    if name == "bert-large":
        return Bert(1024, 24, 16, LENGTH)
    if name == "bert-base":
        return Bert(768, 12, 12, 384)
    return Vision(name, "nhwc" in options)


def optimizer_of(model, name, options):
    if "adafactor" in options:
        from transformers.optimization import Adafactor

        return Adafactor(model.parameters(), scale_parameter=False, relative_step=False, lr=1e-4)
    if isinstance(model, Vision):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), foreach=False)


def main():
    name, batch, precision, options = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    model = build(name, options).cuda().train()
    if "checkpoint" in options:
        model.checkpoint()
    optimizer = optimizer_of(model, name, options)
    scaler = torch.amp.GradScaler(enabled=precision == "fp16")
    pieces = 4 if "accumulate" in options else 1
    offload = torch.autograd.graph.save_on_cpu(pin_memory=True) if "offload" in options else contextlib.nullcontext()
    for step in range(STEPS):
        for piece in range(pieces):
            with torch.autocast("cuda", torch.float16, enabled=precision == "fp16"), offload:
                loss = model.loss(batch // pieces) / pieces
            scaler.scale(loss).backward()
        if isinstance(model, Bert):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    core = ctypes.CDLL(os.path.join(os.environ["TONNAGE_LIB"], "libtonnage-vgpu.so"))
    path = os.path.join(os.environ["TMPDIR"], "work.tsv")
    core.tn_vgpu_work_write(path.encode())
    print(open(path).read())


main()
