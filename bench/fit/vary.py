#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tonnage fit --vary` on upstream scripts, against a run of each combination by itself.

    bench/fit/vary.py --sources DIRECTORY [--only TEXT]

The scripts and their data are those of bench/fix/upstream (see its run.py), with two values varied. Every combination is then run alone by
`tonnage run` on the card; `equal`: the largest first value for each second one is the same both ways. `trials` beside `combinations` says what
was saved; `cpu` are seconds of processor time of the search and of all those runs. Rows that are there stay where they are not
asked for; bench/results/fit_vary.csv.
"""

import argparse
import csv
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

RESULTS = ROOT / "bench/results/fit_vary.csv"
FIELDS = ["script", "card", "axes", "largest", "by_hand", "equal", "trials", "combinations", "cpu", "cpu_by_hand"]
# name of a row of table.toml: (card, memory or None, first axis, second axis, arguments)
PROGRAMS = {
    "nanogpt": ("rtx3060", None, ("batch_size", [4, 8, 16, 32]), ("block_size", [128, 256, 512, 1024]),
                ["--dataset=shakespeare_char", "--compile=False", "--batch_size=16", "--block_size=1024", "--eval_iters=2"]),
    "llama2_c": ("rtx4060", None, ("batch_size", [8, 16, 32, 64]), ("max_seq_len", [64, 128, 256]),
                 ["--compile=False", "--batch_size=64", "--max_seq_len=256", "--eval_iters=2"]),
    "egnn_nbody": ("rtx3060", "3GiB", ("batch_size", [100, 250, 500, 1000]), ("nf", [64, 128, 256, 512]),
                   ["--batch_size", "1000", "--nf", "512", "--n_layers", "7"]),
    "bert_pytorch": ("rtx3060", None, ("batch", [2, 4, 8, 16]), ("length", [64, 128, 256, 512]),
                     ["-c", "made/corpus.txt", "-v", "made/vocab", "-o", "made/bert.model", "-hs", "768", "-l", "12", "-a", "12",
                      "-s", "{length}", "-b", "{batch}", "-w", "1"]),
    "timm_vit_base": ("rtx4060", None, ("batch", [16, 32, 64, 128]), ("size", [128, 160, 224]),
                      ["--data-dir", "images", "--num-classes", "4", "--model", "vit_base_patch16_224", "--amp", "-b", "{batch}",
                       "--img-size", "{size}", "--workers", "1", "--epochs", "1"]),
    "informer": ("rtx3060", "4GiB", ("batch_size", [16, 32, 64, 128]), ("seq_len", [48, 96, 192, 336]),
                 ["--model", "informer", "--data", "ETTh1", "--batch_size", "256", "--seq_len", "336", "--label_len", "48",
                  "--pred_len", "24", "--itr", "1"]),
    "sasrec": ("rtx3060", "2GiB", ("batch_size", [64, 128, 256, 512]), ("maxlen", [50, 100, 200]),
               ["--dataset", "made", "--train_dir", "out", "--batch_size", "512", "--hidden_units", "256", "--num_heads", "4",
                "--maxlen", "200"]),
    "makemore": ("rtx3060", None, ("batch", [128, 256, 512, 1024]), ("n-layer", [3, 6, 12]),
                 ["--device", "cuda", "--n-layer", "12", "--n-head", "12", "--n-embd", "768", "-b", "{batch}", "-n", "1"]),
    "gin_dd": ("rtx3060", "2GiB", ("hidden_channels", [64, 128, 256, 512]), ("num_layers", [2, 4, 8]),
               ["--dataset", "DD", "--hidden_channels", "512", "--num_layers", "4", "--epochs", "2"]),
    "diffusers_unconditional": ("rtx3060", None, ("train_batch_size", [4, 8, 16, 32]), ("resolution", [32, 64, 128]),
                                ["--train_data_dir", "../../made/images", "--resolution", "64", "--train_batch_size", "32",
                                 "--mixed_precision", "no", "--output_dir", "../../made/out", "--dataloader_num_workers", "1"]),
}  # fmt: skip


def tonnage(command, options, words, folder):
    """The document of a command on a program, or {}; and the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        path = pathlib.Path(out) / "out.json"
        line = [TONNAGE, command, "--quiet", *options, "--json", path, "--", *words]
        subprocess.run(list(map(str, line)), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        document = json.loads(path.read_text()) if path.exists() else {}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return document, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def placed(words, name, value):
    """The words with a value of an axis, put there in another way than the program does it."""
    made = [word.replace("{%s}" % name, str(value)) for word in words]
    for i, word in enumerate(words):
        if word == "--" + name:
            made[i + 1] = str(value)
        elif word.startswith("--%s=" % name):
            made[i] = "--%s=%d" % (name, value)
    return made


def measure(name, row, sources):
    card, memory, first, second, arguments = PROGRAMS[name]
    folder = sources / row["repository"].split("/")[1] / row.get("folder", "")
    python = ENVIRONMENTS / row.get("environment", "torch-2.11.0") / "bin/python"
    words = [str(python), *row["start"], *arguments]
    options = ["--gpu", card, *(["--memory", memory] if memory else [])]
    vary = [text for axis, values in (first, second) for text in ("--vary", axis + "=" + ",".join(map(str, values)))]
    found, cpu = tonnage("fit", [*options, *vary], words, folder)
    largest = [line["largest"] for line in found["cards"][0]["rows"]] if found else None
    by_hand, cpu_by_hand = [], 0
    for other in second[1]:
        fitting = [0]
        for value in first[1]:
            report, took = tonnage("run", options, placed(placed(words, first[0], value), second[0], other), folder)
            cpu_by_hand += took
            if report.get("verdict") == "fits":
                fitting.append(value)
        by_hand.append(max(fitting))
    return {"script": name, "card": " ".join(options[1::2]), "axes": " x ".join(axis for axis, _ in (first, second)),
            "largest": largest, "by_hand": by_hand, "equal": largest == by_hand, "trials": found.get("trials"),
            "combinations": len(first[1]) * len(second[1]), "cpu": round(cpu, 1), "cpu_by_hand": round(cpu_by_hand, 1)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    scripts = tomllib.loads((HERE.parent / "fix/upstream/table.toml").read_text())["script"]
    table = {row["name"]: row for row in scripts}
    known = {row["script"]: row for row in csv.DictReader(RESULTS.open())} if RESULTS.exists() else {}
    for name in PROGRAMS:
        if options.only in name:
            known[name] = measure(name, table[name], options.sources.resolve())
            print(known[name], flush=True)
            with RESULTS.open("w", newline="") as out:
                writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(known[name] for name in PROGRAMS if name in known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
