import torch
import torchvision

model = torchvision.models.resnet50(num_classes=1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_function = torch.nn.CrossEntropyLoss()

for step in range(4):
    images = torch.rand(32, 3, 224, 224).cuda()
    labels = torch.randint(1000, (32,)).cuda()
    optimizer.zero_grad()
    loss = loss_function(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
