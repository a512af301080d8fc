import pickle

import torch
from torch import nn

torch.cuda.memory._record_memory_history(max_entries=50000)

model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    loss = nn.functional.cross_entropy(
        model(torch.rand(8192, 4096, device="cuda")), torch.randint(10, (8192,), device="cuda")
    )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

torch.cuda.memory._dump_snapshot("memory.pickle")
torch.cuda.memory._record_memory_history(enabled=None)

with open("memory.pickle", "rb") as file:
    snapshot = pickle.load(file)
allocations = [entry for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"]
assert len(allocations) > 50, len(allocations)
assert any(frame["filename"] == __file__ for entry in allocations for frame in entry["frames"])
print("recorded", len(allocations), "allocations")
