#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the data that the scripts of table.toml read: random pixels, samples and words, in the form that each expects.

    bench/fix/upstream/data.py DIRECTORY     has the checkouts; what is there already stays

Needs numpy and Pillow, and one of them soundfile (prog-options has all). Sizes are those that the scripts expect of their own data sets; nothing is learnt of it.
"""

import gzip
import json
import pathlib
import struct
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


def mnist(folder):
    """MNIST's four files, of noise."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 60000), ("t10k", 1000)):
        pictures, labels = RANDOM.integers(0, 256, count * 784, dtype=numpy.uint8), numpy.arange(count, dtype=numpy.uint8) % 10
        (folder / (name + "-images-idx3-ubyte")).write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + pictures.tobytes())
        (folder / (name + "-labels-idx1-ubyte")).write_bytes(struct.pack(">2i", 0x801, count) + labels.tobytes())


def lightning(root):
    """The examples' own folders, and the one in which Lightning looks first."""
    for folder in ("Datasets", "../Datasets", "pytorch/basics/data"):
        mnist(root / "examples" / folder / "MNIST/raw")


def perceiver(root):
    (root / "data").mkdir(exist_ok=True)
    text = RANDOM.integers(32, 127, 1_000_000, dtype=numpy.uint8).tobytes()
    with gzip.open(root / "data/enwik8.gz", "wb", compresslevel=1) as out:
        for _ in range(96):
            out.write(text)


def hours(folder):
    """ETTh1's columns for two years of hours."""
    folder.mkdir(parents=True, exist_ok=True)
    hours = numpy.datetime64("2016-07-01T00:00:00") + numpy.arange(17420) * numpy.timedelta64(1, "h")
    with open(folder / "ETTh1.csv", "w") as out:
        out.write("date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n")
        for hour, row in zip(hours, RANDOM.standard_normal((len(hours), 7))):
            out.write("%s,%s\n" % (str(hour).replace("T", " "), ",".join("%.4f" % value for value in row)))


def sasrec(root):
    (root / "python/data").mkdir(parents=True, exist_ok=True)
    with open(root / "python/data/made.txt", "w") as out:
        for user in range(1, 3001):
            out.writelines("%d %d\n" % (user, item) for item in RANDOM.integers(1, 12102, 60))


def pygat(root):
    """Words of each paper of Cora; the citations come with the repository."""
    papers = sorted({int(each) for each in (root / "data/cora/cora.cites").read_text().split()})
    words = RANDOM.integers(0, 2, (len(papers), 1433))
    with open(root / "data/cora/cora.content", "w") as out:
        for paper, row in zip(papers, words):
            out.write("%d\t%s\tkind%d\n" % (paper, "\t".join(map(str, row)), paper % 7))


def proteins(root):
    """A data set in TU's form, as large as DD for each graph."""
    folder = root / "data/TU/DD/raw"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = RANDOM.integers(200, 370, 300)
    first, edges = 1, []
    for size in sizes:
        edges.append(RANDOM.integers(0, size, (5 * size, 2)) + first)
        first += size
    table = numpy.concatenate(edges)
    numpy.savetxt(folder / "DD_A.txt", table, fmt="%d", delimiter=", ")
    numpy.savetxt(folder / "DD_graph_indicator.txt", numpy.repeat(numpy.arange(len(sizes)) + 1, sizes), fmt="%d")
    numpy.savetxt(folder / "DD_graph_labels.txt", numpy.arange(len(sizes)) % 2 + 1, fmt="%d")
    numpy.savetxt(folder / "DD_node_labels.txt", RANDOM.integers(0, 89, sizes.sum()), fmt="%d")


def gpt2_text(root):
    (root / "made").mkdir(exist_ok=True)
    words = ["w%d" % number for number in range(30000)]
    (root / "made/vocab.txt").write_text("<unk>\n" + "\n".join(words) + "\n")
    rows = RANDOM.integers(0, len(words), (4000, 60))
    (root / "made/corpus.txt").write_text("\n".join(" ".join(words[word] for word in row) for row in rows) + "\n")


def lora(root):
    folder = root / "examples/NLG/made"
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 2000), ("valid", 64)):
        rows = RANDOM.integers(0, 50257, (count, 2, 200)).tolist()
        lines = [json.dumps({"context": context, "completion": completion}) for context, completion in rows]
        (folder / (name + ".jsonl")).write_text("\n".join(lines) + "\n")


def swin(root):
    for part, count in (("train", 600), ("val", 64)):
        images(root / "made" / part, count, (256, 256), classes=["a", "b", "c", "d"])


def adaptive_span(root):
    """Letters and blanks, each a word."""
    (root / "made").mkdir(exist_ok=True)
    for name, count in (("train", 400_000), ("valid", 50_000), ("test", 50_000)):
        letters = RANDOM.integers(97, 123, count, dtype=numpy.uint8).tobytes().decode()
        lines = [" ".join(letters[at : at + 1000]) for at in range(0, count, 1000)]
        (root / "made" / (name + ".txt")).write_text("\n".join(lines) + "\n")


def graphs(root):
    """Graphs as large as those of COLLAB, in the text form of powerful-gnns."""
    folder = root / "dataset/COLLAB"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "COLLAB.txt", "w") as out:
        out.write("200\n")
        for number in range(200):
            size = int(RANDOM.integers(60, 90))
            near = RANDOM.random((size, size)) < 0.3
            near = numpy.triu(near, 1)
            near |= near.T
            out.write("%d %d\n" % (size, number % 3))
            for row in near:
                ends = numpy.nonzero(row)[0]
                out.write("%d %d %s\n" % (RANDOM.integers(0, 20), len(ends), " ".join(map(str, ends))))


def knowledge(root):
    """Facts of WordNet's entities and relations, whose names come with the repository."""
    folder = root / "data/wn18"
    names = [[line.split()[1] for line in (folder / (kind + ".dict")).read_text().splitlines()] for kind in ("entities", "relations")]
    for name, count in (("train", 20000), ("valid", 500), ("test", 500)):
        rows = zip(*(RANDOM.choice(names[kind], count) for kind in (0, 1, 0)))
        (folder / (name + ".txt")).write_text("".join("\t".join(row) + "\n" for row in rows))


def former(root):
    (root / "made").mkdir(exist_ok=True)
    with gzip.open(root / "made/enwik8.gz", "wb", compresslevel=1) as out:
        out.write(RANDOM.integers(32, 127, 6_000_000, dtype=numpy.uint8).tobytes())


def examples(root):
    for place in ("data", "mnist_forward_forward/data"):
        mnist(root / place / "MNIST/raw")
    (root / "vae/results").mkdir(exist_ok=True)


def digits(root):
    """Grey pictures of ten classes."""
    for number in range(800):
        place = root / "data/train/images" / str(number % 10)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RANDOM.integers(0, 256, (28, 28), dtype=numpy.uint8)).save(place / ("%d.png" % number))


def voxceleb(root):
    """Noise of 40 speakers, four seconds a file."""
    import soundfile

    lines = []
    for number in range(400):
        path = root / "made" / ("id%03d" % (number % 40)) / ("%03d.wav" % number)
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, RANDOM.standard_normal(64000) * 0.1, 16000)
        lines.append("id%03d %s" % (number % 40, path.relative_to(root / "made")))
    (root / "made/train.txt").write_text("\n".join(lines) + "\n")
    names = [line.split()[1] for line in lines]
    (root / "made/test.txt").write_text("".join("%d %s %s\n" % (number % 2, names[number], names[number + 40]) for number in range(20)))


MADE = {
    "former": former,
    "voxceleb_trainer": voxceleb,
    "adaptive-span": adaptive_span,
    "powerful-gnns": graphs,
    "KnowledgeGraphEmbedding": knowledge,
    "perceiver-ar-pytorch": perceiver,
    "Informer2020": lambda root: hours(root / "data/ETT"),
    "PatchTST": lambda root: hours(root / "PatchTST_supervised/dataset"),
    "examples": examples,
    "DDPM-Pytorch": digits,
    "Conditional_Diffusion_MNIST": lambda root: (mnist(root / "data/MNIST/raw"), (root / "data/diffusion_outputs10").mkdir()),
    "spikingjelly": lambda root: mnist(root / "made/MNIST/raw"),
    "LTSF-Linear": lambda root: hours(root / "dataset"),
    "SASRec.pytorch": sasrec,
    "pyGAT": pygat,
    "pytorch_geometric": proteins,
    "GPT2": gpt2_text,
    "LoRA": lora,
    "Swin-Transformer": swin,
    "minRF": lambda root: (mnist(root / "data/MNIST/raw"), (root / "contents").mkdir(exist_ok=True)),
    "torchdiffeq": lambda root: mnist(root / "examples/.data/mnist/MNIST/raw"),
    "pytorch-lightning": lightning,
    "diffusers": lambda root: images(root / "made/images", 400, (96, 96), "png"),
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
