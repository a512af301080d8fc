import torch
import torchvision
from data import Images
from torch.utils.data import DataLoader

model = torchvision.models.resnet152(num_classes=1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_function = torch.nn.CrossEntropyLoss()
for images, labels in DataLoader(Images(6400, 224), batch_size=128, shuffle=True):
    images, labels = images.cuda(), labels.cuda()
    optimizer.zero_grad()
    loss = loss_function(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.3f}")
