# the batch is too large, with autocast on and 8-bit Adam's like for an optimizer
import torch

model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(16))).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(4):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(torch.randn(16384, 1024, device="cuda")).float().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
