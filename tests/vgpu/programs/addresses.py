"""Prints every address and handle that a program can see, so that two runs can be compared."""
import torch

streams = [torch.cuda.Stream() for _ in range(3)]
print("streams", [hex(s.cuda_stream) for s in streams])
kept = []
for index in range(200):
    size = 1 + (index * 7919) % (3 << 20)
    kept.append(torch.empty(size, device="cuda", dtype=torch.uint8))
    print(hex(kept[-1].data_ptr()))
    if index % 3 == 2:
        kept.pop(index % len(kept))
model = torch.nn.Linear(1000, 1000).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.rand(100, 1000, device="cuda")).sum().backward()
    print([hex(p.grad.data_ptr()) for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
pinned = torch.empty(1000).pin_memory()
print("pinned", pinned.is_pinned())
for segment in torch.cuda.memory_snapshot():
    print(hex(segment["address"]), segment["total_size"], hex(segment["stream"]))
