# SPDX-License-Identifier: Apache-2.0
"""GPT-2 or ResNet-50, three steps, the last of which torch.profiler watches; prints the bytes of each of the profiler's
memory categories at the moment that its timeline holds most; with a second word nothing of them, which takes seconds. Run by
bench/categories/run.py on the virtual GPU."""

import collections
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(50257, (8, 512)).cuda()
    return optimizer, lambda: model(input_ids=tokens, labels=tokens).loss


def resnet50():
    import torchvision

    model = torchvision.models.resnet50(num_classes=1000).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = torch.rand(32, 3, 224, 224).cuda(), torch.randint(1000, (32,)).cuda()
    return optimizer, lambda: torch.nn.functional.cross_entropy(model(images), labels)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def at_peak(timeline):
    """Bytes by category where their sum is highest. A version counts for the category that it has."""
    now, most, best = collections.Counter(), 0, {}
    for _, action, (key, _version), size in timeline.timeline:
        if key.device.type != "cuda":
            continue
        name = timeline._categories.get(key, _version)
        name = name.name.lower() if name is not None else "unknown"
        if action.name in ("PREEXISTING", "CREATE"):
            now[name] += size
        elif action.name == "DESTROY":
            now[name] -= size
        else:  # a new version of the same memory: another category from now on
            after = timeline._categories.get(key, _version + 1)
            now[name] -= size
            now[after.name.lower() if after is not None else "unknown"] += size
        if sum(now.values()) > most:
            most, best = sum(now.values()), dict(now)
    return {name: size for name, size in best.items() if size}


optimizer, loss = {"gpt2": gpt2, "resnet50": resnet50}[sys.argv[1]]()
step(optimizer, loss)
step(optimizer, loss)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True) as profiler:
    step(optimizer, loss)
print(json.dumps(at_peak(profiler._memory_profile()) if len(sys.argv) == 2 else {}))
