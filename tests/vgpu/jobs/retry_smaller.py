import torch
from torchvision.models import resnet18


def train(model, optimizer, batch):
    for _ in range(3):
        images = torch.rand(batch, 3, 224, 224, device="cuda")
        labels = torch.randint(10, (batch,), device="cuda")
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch = 256
while True:
    try:
        train(model, optimizer, batch)
        break
    except torch.cuda.OutOfMemoryError:
        print("batch", batch, "is too large")
        optimizer.zero_grad()
        torch.cuda.empty_cache()
        batch //= 2
        if batch == 0:
            raise
print("trained with batch", batch)
