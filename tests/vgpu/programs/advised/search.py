# cuDNN looks for a plan whose workspace fits, and some that it tries do not: that is no error of the program
import torch
model = torch.nn.Sequential(*(torch.nn.Conv2d(64 if i else 3, 64, 5, padding=2) for i in range(6))).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(3):
    model(torch.randn(32, 3, 256, 256, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
