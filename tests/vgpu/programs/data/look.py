# SPDX-License-Identifier: Apache-2.0
"""look.py: what the libraries give a program for files of all kinds, as lines of JSON. Knows nothing of Tonnage."""

import io
import json
import os
import pickle

import numpy
import torch
from datasets import Dataset, Features, Image, List, Value, load_from_disk
from PIL import Image as Pillow
from torchvision import io as pictures

os.makedirs("files", exist_ok=True)
os.chdir("files")


def tell(name, *values):
    print(json.dumps([name, *values]), flush=True)


values = numpy.random.default_rng(1).integers(1, 255, (120, 200, 4), dtype=numpy.uint8)
for mode, name in (("RGB", "a.jpg"), ("RGB", "a.png"), ("RGBA", "alpha.png"), ("L", "grey.png"), ("RGB", "a.webp"), ("RGB", "a.bmp"), ("RGB", "a.tif")):
    Pillow.fromarray(values).convert(mode).save(name)
    with Pillow.open(name) as image:
        tell(name, image.size, image.mode, image.format, int(numpy.asarray(image).max()))
Pillow.fromarray(values[:40, :40, :3]).save("small.png")
tell("small.png", int(numpy.asarray(Pillow.open("small.png")).max()))
with open("a.jpg", "rb") as file:
    tell("open file", Pillow.open(file).convert("RGB").size)
tell("in memory", Pillow.open(io.BytesIO(open("a.png", "rb").read())).resize((10, 10)).size)
thumbnail = Pillow.open("a.jpg")
thumbnail.thumbnail((50, 50))
tell("thumbnail", thumbnail.size)
tell("pickled", pickle.loads(pickle.dumps(Pillow.open("a.jpg"))).size)
Pillow.open("a.png").verify()

# Cut behind their headers, and without any.
for name in "a.jpg", "a.png", "a.webp", "grey.png", "alpha.png":
    with open(name, "rb") as file, open(f"cut-{name}", "wb") as cut:
        cut.write(file.read(700 if name == "a.jpg" else 40))
    image = Pillow.open(f"cut-{name}")
    image.load()
    tell(f"cut-{name}", image.size, image.mode)
open("empty.jpg", "wb").close()
tell("empty.jpg", Pillow.open("empty.jpg").convert("RGB").size)
with open("hole.jpg", "wb") as file:
    file.truncate(110000)
tell("hole.jpg", Pillow.open("hole.jpg").convert("RGB").size)
for name, content in (("words.jpg", b"no image at all"), ("gone.jpg", None)):
    if content is not None:
        open(name, "wb").write(content)
    try:
        Pillow.open(name)
    except OSError as error:
        tell(name, type(error).__name__)

for name in "a.jpg", "a.png", "a.webp", "cut-a.jpg", "empty.jpg", "hole.jpg", "grey.png", "small.png":
    image = pictures.read_image(name)
    tell(f"tensor {name}", list(image.shape), str(image.dtype), int(image.max()))
tell("as RGB", list(pictures.decode_image("grey.png", mode="RGB").shape))
tell("JPEG in memory", list(pictures.decode_jpeg(pictures.read_file("a.jpg")).shape))

# A large table: its values take no memory. Messages of a chat are of somebody. What nobody knows of a data set is made.
features = Features({"text": Value("string"), "numbers": List(Value("int64")), "flag": Value("bool"), "score": Value("float32"),
                     "messages": List({"role": Value("string"), "content": Value("string")}), "image": Image()})  # fmt: skip
row = {"text": "x", "numbers": [5], "flag": False, "score": 0.5, "messages": [{"role": "user", "content": "y"}], "image": None}
Dataset.from_list([row], features=features).save_to_disk("large")
info = json.load(open("large/dataset_info.json"))
os.unlink("large/data-00000-of-00001.arrow")
state = json.load(open("large/state.json"))
state["_split"] = "train"
json.dump(state, open("large/state.json", "w"))
info["splits"] = {"train": {"name": "train", "num_examples": 2000, "num_bytes": 8_000_000_000}}
json.dump(info, open("large/dataset_info.json", "w"))


def resident():
    return sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Private_Dirty"))


before = resident()
data = load_from_disk("large")
found = data[1999]
torch.ones(1)
tell("large", len(data), len(found["text"]) > 400_000, len(found["numbers"]) > 50_000, set(found["numbers"]) == {1}, found["flag"], found["score"],
     [message["role"] for message in found["messages"][:3]], found["image"].size)  # fmt: skip
tell("taken", resident() - before)
tell("sent", len(pickle.loads(pickle.dumps(data))), len(pickle.dumps(data)) < 100_000)
