"""Loader workers that make CUDA tensors and send them to a training loop."""

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(3, 64, 64, device="cuda")


if __name__ == "__main__":
    model = torch.nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for batch in DataLoader(Samples(), batch_size=8, num_workers=2, multiprocessing_context="spawn"):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done", batch.device, tuple(batch.shape))
