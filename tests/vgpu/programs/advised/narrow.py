# what it needs and the card lie closer together than what is known of the CUDA context
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(16))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(1024, 2048, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
