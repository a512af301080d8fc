#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the data that the scripts of table.toml read: random pixels, samples and words, in the form that each expects.

    bench/fix/upstream/data.py DIRECTORY     has the checkouts; what is there already stays

Needs numpy and Pillow. Sizes are those that the scripts expect of their own data sets; nothing is learnt of it.
"""

import pathlib
import sys

import numpy
from PIL import Image

RANDOM = numpy.random.default_rng(0)


def images(folder, count, size, end="jpg", classes=()):
    """Pictures of random blocks, in a folder for each class where there are any."""
    for number in range(count):
        place = folder / classes[number % len(classes)] if classes else folder
        place.mkdir(parents=True, exist_ok=True)
        blocks = RANDOM.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
        Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST).save(place / ("%04d.%s" % (number, end)))


def tokens(path, count, kinds):
    path.parent.mkdir(parents=True, exist_ok=True)
    RANDOM.integers(0, kinds, count, dtype=numpy.uint16).tofile(path)


def bert(root):
    path = root / "made/corpus.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = RANDOM.integers(0, 3000, (4000, 2, 250))
    path.write_text("\n".join("\t".join(" ".join("w%d" % word for word in half) for half in row) for row in rows) + "\n")


def llama2(root):
    for number in range(3):
        tokens(root / ("data/TinyStories_all_data/data%02d.bin" % number), 600_000, 32000)


def ijepa(root):
    images(root / "made/images/train", 800, (256, 256), classes=["a", "b"])
    text = (root / "configs/in1k_vith14_ep300.yaml").read_text()
    text = text.replace("imagenet_full_size/061417/", "images/").replace("num_workers: 10", "num_workers: 2")
    text = text.replace("$replace_this_with_absolute_path_to_your_datasets_directory", str(root / "made"))
    text = text.replace("$replace_this_with_path_for_experiment_logs/vith14.224-bs.2048-ep.300/", "made/logs/")
    text = text.replace("model_name: vit_huge", "model_name: vit_base").replace("patch_size: 14", "patch_size: 16")
    (root / "made/logs").mkdir(parents=True, exist_ok=True)
    (root / "made/vitb16.yaml").write_text(text)


def egnn(root):
    folder = root / "n_body_system/dataset"
    for name, count in (("train", 3000), ("valid", 400), ("test", 400)):
        name += "_charged5_initvel1small"
        charges = RANDOM.choice([1.0, -1.0], (count, 5, 1))
        numpy.save(folder / ("loc_%s.npy" % name), RANDOM.standard_normal((count, 49, 3, 5)))
        numpy.save(folder / ("vel_%s.npy" % name), RANDOM.standard_normal((count, 49, 3, 5)))
        numpy.save(folder / ("edges_%s.npy" % name), charges @ charges.transpose(0, 2, 1))
        numpy.save(folder / ("charges_%s.npy" % name), charges)


def glow(root):
    images(root / "made/images/all", 512, (64, 64), "png")
    for name in ("sample", "checkpoint"):
        (root / name).mkdir(exist_ok=True)


MADE = {
    "BERT-pytorch": bert,
    "llama2.c": llama2,
    "ijepa": ijepa,
    "egnn": egnn,
    "lightweight-gan": lambda root: images(root / "made/images", 256, (512, 512)),
    "glow-pytorch": glow,
}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    for name, make in MADE.items():
        stamp = root / name / ".made"
        if (root / name).is_dir() and not stamp.exists():
            make(root / name)
            stamp.touch()


if __name__ == "__main__":
    main()
