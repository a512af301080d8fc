# a small convolutional net, and a batch of 60,000
import torch

model = torch.nn.Sequential(torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(),
                            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(9216, 10)).cuda()
optimizer = torch.optim.Adadelta(model.parameters())
for step in range(3):
    images, labels = torch.randn(60000, 1, 28, 28, device="cuda"), torch.zeros(60000, dtype=torch.long, device="cuda")
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
