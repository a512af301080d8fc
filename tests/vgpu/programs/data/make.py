# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER: what people train on: images in folders by class, and data sets that `datasets` has saved."""

import io
import os
import random
import sys

import numpy
from datasets import ClassLabel, Dataset, Features, Image, List, Value
from PIL import Image as Pillow

os.chdir(sys.argv[1])
values = numpy.random.default_rng(0)
chance = random.Random(0)


def photograph(width, height):
    return Pillow.fromarray(values.integers(0, 255, (height, width, 3), dtype=numpy.uint8))


for split, count in (("train", 48), ("val", 12)):
    for name in "cat", "dog":
        os.makedirs(f"images/{split}/{name}")
        for at in range(count // 2):
            photograph(200 + 8 * at, 160).save(f"images/{split}/{name}/{at}.jpg")

features = Features({"input_ids": List(Value("int32")), "labels": ClassLabel(names=["no", "yes"]), "text": Value("string")})
rows = [{"input_ids": list(range(3, chance.randrange(20, 400))), "labels": at % 2, "text": "a word " * chance.randrange(5, 90)} for at in range(2500)]
Dataset.from_list(rows, features=features).save_to_disk("tokens", num_shards=2)


def bytes_of(image):
    file = io.BytesIO()
    image.save(file, "JPEG")
    return {"bytes": file.getvalue(), "path": None}


rows = [{"image": bytes_of(photograph(320, 240)), "label": at % 2} for at in range(64)]
Dataset.from_list(rows, features=Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])})).save_to_disk("photographs")
