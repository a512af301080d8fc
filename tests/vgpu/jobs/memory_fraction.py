import torch

torch.cuda.set_per_process_memory_fraction(0.5)
total = torch.cuda.get_device_properties(0).total_memory
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    loss = model(torch.rand(2048, 4096, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"used at most {torch.cuda.max_memory_reserved() / total:.1%} of the card")
