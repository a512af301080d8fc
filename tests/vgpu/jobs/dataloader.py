import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models import mobilenet_v2


class Pictures(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 192, 192, generator=generator), index % 10


def main():
    loader = DataLoader(
        Pictures(), batch_size=64, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True, drop_last=True
    )
    model = mobilenet_v2(num_classes=10).cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item())


if __name__ == "__main__":
    main()
