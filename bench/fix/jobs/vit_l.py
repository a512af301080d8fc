import torch
import torchvision
from data import Images
from torch.utils.data import DataLoader

model = torchvision.models.vit_l_16(num_classes=1000).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loss_function = torch.nn.CrossEntropyLoss()
for images, labels in DataLoader(Images(3200, 224), batch_size=64, shuffle=True):
    images, labels = images.cuda(), labels.cuda()
    optimizer.zero_grad()
    loss = loss_function(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.3f}")
