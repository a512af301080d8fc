# SPDX-License-Identifier: Apache-2.0
"""Data sets of torchvision that are not there (`--data shape`, doc/design/0042-data.md): MNIST, its relatives of the same sizes, and CIFAR.

Their sizes are published, so nothing is assumed: black pictures, and the labels 0, 1, 2 ... in turn. What is not there is not downloaded,
either. A folder that exists is read as it is, whatever lies in it.
"""

import functools
import os

from . import data_notes, guard

_MNIST_ROWS = {True: 60000, False: 10000}  # training, test
_CIFAR_ROWS = {True: 50000, False: 10000}
_OF_MNISTS_SIZES = ("MNIST", "FashionMNIST", "KMNIST")
_CIFAR_CLASSES = {"CIFAR10": 10, "CIFAR100": 100}


@guard.alone
def watch_mnist(module):
    """MNIST asks itself whether its files exist, downloads them, and reads them, in methods of its own."""
    kind = module.MNIST
    exists, download, load = kind._check_exists, kind.download, kind._load_data

    def is_made(self):
        return type(self).__name__ in _OF_MNISTS_SIZES and not os.path.exists(self.raw_folder) and not exists(self)

    @functools.wraps(exists)
    def _check_exists(self):
        return exists(self) or is_made(self)

    @functools.wraps(download)
    def get(self):
        return None if is_made(self) else download(self)

    @functools.wraps(load)
    def _load_data(self):
        if not is_made(self):
            return load(self)
        import torch

        rows = _MNIST_ROWS[bool(self.train)]
        name = "%s-images-idx3-ubyte" % ("train" if self.train else "t10k")
        data_notes.note("data_set", rows * 28 * 28, rows, None, os.path.join(self.raw_folder, name))
        return torch.zeros(rows, 28, 28, dtype=torch.uint8), torch.arange(rows) % 10

    kind._check_exists, kind.download, kind._load_data = _check_exists, get, _load_data


@guard.alone
def watch_cifar(module):
    """CIFAR reads its files as it is made."""
    kind = module.CIFAR10
    original = kind.__init__

    @functools.wraps(original)
    def made(self, root, train=True, transform=None, target_transform=None, *args, **kwargs):
        count = _CIFAR_CLASSES.get(type(self).__name__)
        folder = os.path.join(os.path.expanduser(root), self.base_folder)
        if count is None or os.path.exists(folder):
            original(self, root, train, transform, target_transform, *args, **kwargs)
            return
        import numpy

        super(kind, self).__init__(root, transform=transform, target_transform=target_transform)
        rows = _CIFAR_ROWS[bool(train)]
        self.train = train
        self.data = numpy.zeros((rows, 32, 32, 3), numpy.uint8)
        self.targets = [row % count for row in range(rows)]
        self.classes = ["class %d" % number for number in range(count)]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        [(name, _), *_] = self.train_list if train else self.test_list
        data_notes.note("data_set", self.data.nbytes, rows, None, os.path.join(folder, name))

    kind.__init__ = made
