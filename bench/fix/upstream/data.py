#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the data that the scripts of table.toml read: random pixels, samples and words, in the form that each expects.

    bench/fix/upstream/data.py DIRECTORY     has the checkouts; what is there already stays

Needs numpy and Pillow. Sizes are those that the scripts expect of their own data sets; nothing is learnt of it.
"""

import json
import pathlib
import struct
import sys
import wave

import numpy
from PIL import Image

RANDOM = numpy.random.default_rng(0)


def images(folder, count, size, end="jpg", classes=(), mode="RGB"):
    """Pictures of random blocks, in a folder for each class where there are any."""
    for number in range(count):
        place = folder / classes[number % len(classes)] if classes else folder
        place.mkdir(parents=True, exist_ok=True)
        blocks = RANDOM.integers(0, 256, (8, 8, 3) if mode == "RGB" else (8, 8), dtype=numpy.uint8)
        Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST).save(place / ("%04d.%s" % (number, end)))


def words(path, lines, length, kinds):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = RANDOM.integers(0, kinds, (lines, length))
    path.write_text("\n".join(" ".join("w%d" % word for word in row) for row in rows) + "\n")


def tokens(path, count, kinds):
    path.parent.mkdir(parents=True, exist_ok=True)
    RANDOM.integers(0, kinds, count, dtype=numpy.uint16).tofile(path)


def unet(root):
    images(root / "data/imgs", 48, (640, 640))
    folder = root / "data/masks"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(48):
        mask = Image.fromarray((RANDOM.integers(0, 2, (8, 8)) * 255).astype(numpy.uint8))
        mask.resize((640, 640), Image.Resampling.NEAREST).save(folder / ("%04d_mask.gif" % number))


def transformer_xl(root):
    for name, lines in (("train", 3000), ("valid", 300), ("test", 300)):
        words(root / "data/made" / (name + ".txt"), lines, 200, 250)


def bert(root):
    path = root / "made/corpus.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = RANDOM.integers(0, 3000, (4000, 2, 250))
    path.write_text("\n".join("\t".join(" ".join("w%d" % word for word in half) for half in row) for row in rows) + "\n")


def llama2(root):
    for number in range(3):
        tokens(root / ("data/TinyStories_all_data/data%02d.bin" % number), 600_000, 32000)


def k_diffusion(root):
    images(root / "made/images", 256, (256, 256))
    config = json.loads((root / "configs/config_oxford_flowers.json").read_text())
    config["dataset"] = {"type": "imagefolder", "location": "made/images"}
    (root / "made/images/all").mkdir(exist_ok=True)
    for path in (root / "made/images").glob("*.jpg"):
        path.rename(path.parent / "all" / path.name)
    (root / "made/config.json").write_text(json.dumps(config, indent=2))


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


def sparsify(root):
    tokens(root / "made/tokens.bin", 2_000_000, 4096)


def conv_tasnet(root):
    for part, count in (("tr", 60), ("cv", 6)):
        for kind in ("mix", "s1", "s2"):
            rows = []
            for number in range(count):
                path = root / "made" / part / kind / ("%03d.wav" % number)
                path.parent.mkdir(parents=True, exist_ok=True)
                with wave.open(str(path), "wb") as out:
                    out.setparams((1, 2, 8000, 0, "NONE", ""))
                    out.writeframes(RANDOM.integers(-9000, 9000, 32000, dtype=numpy.int16).tobytes())
                rows.append([str(path), 32000])
            (root / "made" / part / (kind + ".json")).write_text(json.dumps(rows))


def s4(root):
    folder = root / "data/mnist/MNIST/raw"
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 60000), ("t10k", 10000)):
        pixels = RANDOM.integers(0, 256, (count, 28, 28), dtype=numpy.uint8).tobytes()
        (folder / (name + "-images-idx3-ubyte")).write_bytes(struct.pack(">4i", 2051, count, 28, 28) + pixels)
        labels = RANDOM.integers(0, 10, count, dtype=numpy.uint8).tobytes()
        (folder / (name + "-labels-idx1-ubyte")).write_bytes(struct.pack(">2i", 2049, count) + labels)


MADE = {
    "Pytorch-UNet": unet,
    "transformer-xl": transformer_xl,
    "BERT-pytorch": bert,
    "llama2.c": llama2,
    "k-diffusion": k_diffusion,
    "ijepa": ijepa,
    "egnn": egnn,
    "sparsify": sparsify,
    "Conv-TasNet": conv_tasnet,
    "s4": s4,
    "lightweight-gan": lambda root: images(root / "made/images", 256, (512, 512)),
    "edm": lambda root: images(root / "made/images", 512, (64, 64), "png"),
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
