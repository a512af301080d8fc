import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.models import vit_b_16


def main():
    data = datasets.FakeData(96, (3, 224, 224), 10, transforms.ToTensor())
    loader = DataLoader(data, batch_size=24, shuffle=True)
    model = vit_b_16(num_classes=10).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader))
    for images, labels in loader:
        output = model(images.to("cuda"))
        loss = torch.nn.functional.cross_entropy(output, labels.to("cuda"))
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
