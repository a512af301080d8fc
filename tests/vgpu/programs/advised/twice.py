# a second copy of the model on the card, an average of its weights: made on the CPU, moved later
import copy

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(32)))
average = copy.deepcopy(model)
average = average.to("cuda").requires_grad_(False)
model = model.to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(3):
    model(torch.randn(64, 2048, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
