"""Trains ResNet-18 and looks at its memory by PyTorch's own means: a recorded history, a snapshot and memory_summary().

Right: it fits, and under tonnage the program's own recorder works as it does without.
"""

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

torch.cuda.memory._record_memory_history(max_entries=100_000)
model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    images = torch.rand(64, 3, 128, 128, device="cuda")
    labels = torch.randint(10, (64,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.memory._dump_snapshot("memory.pickle")
torch.cuda.memory._record_memory_history(enabled=None)

print(torch.cuda.memory_summary())
allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
print(f"at most {allocated / 2**20:.0f} MiB allocated, {reserved / 2**20:.0f} MiB reserved")
