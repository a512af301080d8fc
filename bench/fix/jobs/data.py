"""Made data, as PyTorch data sets."""
import torch
from torch.utils.data import Dataset


class Tokens(Dataset):
    """Lines of random tokens."""

    def __init__(self, count, length, words):
        self.count, self.length, self.words = count, length, words

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.randint(self.words, (self.length,))


class Images(Dataset):
    """Grey images with random labels."""

    def __init__(self, count, size, classes=1000):
        self.count, self.classes = count, classes
        self.image = torch.full((3, size, size), 0.5)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.image, torch.randint(self.classes, ()).item()
