"""A model cut in two, a half a card."""
import torch
from torch import nn

assert torch.cuda.device_count() == 2, torch.cuda.device_count()
first = nn.Linear(4096, 4096).to("cuda:0")
second = nn.Linear(4096, 4096).to("cuda:1")
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(3):
    hidden = first(torch.rand(512, 4096, device="cuda:0"))
    loss = second(hidden.to("cuda:1")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
for index in range(2):
    print(index, torch.cuda.max_memory_allocated(index), torch.cuda.get_device_name(index))
    assert torch.cuda.max_memory_allocated(index) > 100 << 20
assert torch.cuda.can_device_access_peer(0, 1) in (True, False)
