import argparse

import torch
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--least", type=int, default=32, help="a smaller batch is not worth training with")
options = parser.parse_args()


def train(model, optimizer, batch):
    for _ in range(3):
        images = torch.rand(batch, 3, 224, 224, device="cuda")
        labels = torch.randint(1000, (batch,), device="cuda")
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def fits(model, optimizer, batch):
    try:
        train(model, optimizer, batch)
        return True
    except torch.cuda.OutOfMemoryError:
        print("batch", batch, "is too large")
        if batch // 2 < options.least:
            raise
    return False


model = resnet50(num_classes=1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch = options.batch
while not fits(model, optimizer, batch):
    optimizer.zero_grad()
    torch.cuda.empty_cache()
    batch //= 2
print("trained with batch", batch)
