# SPDX-License-Identifier: Apache-2.0
"""Writes a data set of pictures: `pictures.py yolo FOLDER` with boxes as ultralytics reads them, `folders` by class."""

import pathlib
import sys

import numpy
from PIL import Image

kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
choose = numpy.random.default_rng(0)


def picture(path, width=640, height=480):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(choose.integers(0, 255, (height, width, 3), dtype=numpy.uint8)).save(path, quality=60)


def yolo():
    for part, count in (("train", 64), ("val", 16)):
        for number in range(count):
            picture(folder / f"images/{part}/{number}.jpg")
            boxes = choose.uniform(0.2, 0.8, (8, 4)) * [1, 1, 0.3, 0.3]
            lines = [f"{choose.integers(0, 80)} " + " ".join(f"{value:.4f}" for value in box) for box in boxes]
            label = folder / f"labels/{part}/{number}.txt"
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text("\n".join(lines))
    names = "\n".join(f"  {number}: thing{number}" for number in range(80))
    (folder / "data.yaml").write_text(f"path: {folder.resolve()}\ntrain: images/train\nval: images/val\nnames:\n{names}\n")


def folders():
    for number in range(120):  # denoising-diffusion-pytorch wants a hundred
        picture(folder / f"{number % 4}/{number}.jpg", 256, 256)


globals()[kind]()
