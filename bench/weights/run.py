#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of real sizes, from configuration, tokenizer and headers alone, beside sparse files of their true size.

    bench/weights/run.py [NAME ...]

Needs the environments prog-weights and prog-gptq, and a temporary folder on a file system with holes. Each case runs twice: on files that end after
their header, and with `--weights real` on files of full length that are holes. Writes bench/results/weights.csv: verdict, peaks,
whether they and the program's device map are the same, bytes asked for after loading beside those counted by hand, host memory and
seconds. Rows that were not run are kept.

transformers loads by four threads, whose order is no run's choice. Where two runs differ the first is made again: if it differs from
itself, too, both are made without these threads, and `same_peak` is of those (`unordered` has the peaks with them).
"""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import runs  # noqa: E402
from places import ROOT, TONNAGE  # noqa: E402

CSV = ROOT / "bench/results/weights.csv"
FIELDS = ["case", "options", "verdict", "expected_verdict", "device_bytes", "allocated_bytes", "same_peak", "unordered", "sparse_device_bytes", "same_map", "map", "loaded_bytes",
          "requested_bytes", "expected_loaded", "as_expected", "host_mib", "seconds", "sparse_host_mib", "sparse_seconds", "note"]  # fmt: skip
ENVIRONMENT = "prog-weights"
OTHER = {"gptq": "prog-gptq"}  # environments of models
LIMIT = 170  # seconds a run
HOST = 2048  # MiB that a run may take of the computer's memory
SMALL = 1 << 20  # bytes that buffers (rotary embeddings, position ids) and tables of codes may add to parameters
IN_ORDER = {"HF_DEACTIVATE_ASYNC_LOAD": "1"}  # transformers loads by one thread

# Counted by hand. What was mended after the first run: held against what the program asked the allocator for, not against the blocks it
# got (of a large block up to 1 MiB stays with its tensor: should_split, c10/cuda/CUDACachingAllocator.cpp); and AdamW's update makes a list
# of the parameters' size once more (the manual of torch.optim.AdamW, "foreach": "~ sizeof(params) more peak memory"). Parameters of
#   the 8 B:  2 x 128256 x 4096 + 32 x (2 x 4096^2 + 2 x 1024 x 4096 + 3 x 14336 x 4096) + 65 x 4096
#   the 70 B: 2 x 128256 x 8192 + 80 x (2 x 8192^2 + 2 x 1024 x 8192 + 3 x 28672 x 8192) + 161 x 8192
#   Mixtral:  2 x 32000 x 4096 + 32 x (2 x 4096^2 + 2 x 1024 x 4096 + 8 x 4096 + 24 x 14336 x 4096) + 65 x 4096
#   SDXL, as published: unet 2,567,463,684, VAE 83,653,863, text encoders 123,060,480 and 694,659,840
B8, B70, MIXTRAL = 2 * 8_030_261_248, 2 * 70_553_706_496, 2 * 46_702_792_704
UNET, SDXL = 2 * 2_567_463_684, 2 * 3_468_837_867
ADAPTER = 4 * 32 * 16 * (4096 + 4096 + 4096 + 1024)  # fp32, on queries and values
MATRICES, REST = 6_979_321_856, 2 * 1_050_939_392  # of the 8 B: numbers that are quantised, bytes of the others
NF4 = MATRICES // 2 + MATRICES // 64 + MATRICES // 64 // 256 * 4 + REST  # codes, scales, scales of scales
GPTQ = MATRICES // 2 + MATRICES // 128 * 2 + MATRICES // 128 // 2 + 32 * 38_912 * 4 + REST  # codes, scales, zeros, order

BIG = ["--gpu=h200", "--memory=200GiB"]
# name: model, LOAD and WORK of program.py, options, verdict, bytes after loading, least peak of allocated bytes
CASES = {
    "8b generate": ("llama8b", "card", "generate", ["--gpu=h100"], "fits", B8, B8),
    "8b train": ("llama8b", "card", "adamw", ["--gpu=h200"], "fits", B8, 5 * B8),
    "8b train, 24 GB": ("llama8b", "card", "adamw", ["--gpu=rtx4090"], "out_of_memory", B8, B8),
    "70b generate": ("llama70b", "card", "generate", BIG, "fits", B70, B70),
    "70b generate, 80 GB": ("llama70b", "card", "generate", ["--gpu=h100"], "out_of_memory", None, 0),
    "70b train": ("llama70b", "card", "adamw", ["--gpu=h200", "--memory=720GiB"], "fits", B70, 5 * B70),
    "70b train, 640 GiB": ("llama70b", "card", "adamw", ["--gpu=h200", "--memory=640GiB"], "out_of_memory", B70, 4 * B70),
    "mixtral generate": ("mixtral", "card", "generate", BIG, "fits", MIXTRAL, MIXTRAL),
    "mixtral train, SGD": ("mixtral", "card", "sgd", ["--gpu=h200", "--memory=320GiB"], "fits", MIXTRAL, 2 * MIXTRAL),
    "sdxl generate": ("sdxl", "pipeline", "generate", ["--gpu=h100"], "fits", SDXL, SDXL),
    "sdxl train the unet": ("sdxl", "pipeline", "adamw", ["--gpu=h100"], "fits", SDXL, SDXL + 4 * UNET),
    "lora generate": ("lora", "lora", "generate", ["--gpu=h100"], "fits", B8 + ADAPTER, B8 + ADAPTER),
    "lora train": ("lora", "lora", "adapter", ["--gpu=h100"], "fits", B8 + ADAPTER, B8 + 5 * ADAPTER),
    "gptq generate": ("gptq", "gptq", "generate", ["--gpu=h100"], "fits", GPTQ, GPTQ),
    "gptq train an adapter": ("gptq", "gptq", "adapter", ["--gpu=h100"], "fits", GPTQ, GPTQ + 5 * ADAPTER),
    "nf4 generate": ("nf4", "card", "generate", ["--gpu=h100"], "fits", NF4, NF4),
    "nf4 train an adapter": ("nf4", "card", "adapter", ["--gpu=h100"], "fits", NF4, NF4 + 5 * ADAPTER),
    "8b to NF4 while loading": ("llama8b", "quantise", "generate", ["--gpu=h100"], "fits", NF4, NF4),
    "70b to NF4 while loading": ("llama70b", "quantise", "generate", ["--gpu=h100"], "fits", None, B70 // 4),
    "8b cast on the CPU": ("llama8b", "cast", "none", ["--gpu=h100"], "fits", B8, B8),
    "70b cast on the CPU": ("llama70b", "cast", "none", BIG, "fits", B70, B70),
    "8b isnan on the CPU": ("llama8b", "isnan", "none", ["--gpu=h100"], "fits", B8, B8),
    "70b isnan on the CPU": ("llama70b", "isnan", "none", BIG, "fits", B70, B70),
    "auto, 1 card": ("llama70b", "auto", "generate", BIG, "fits", B70, B70),
    "auto, 2 cards": ("llama70b", "auto", "generate", ["--gpu=h100", "--gpus=2"], "fits", B70, B70),
    "auto, 3 cards": ("llama70b", "auto", "generate", ["--gpu=h100", "--gpus=3"], "fits", B70, B70),
    "offload, 1 card": ("llama70b", "offload", "generate", ["--gpu=h100"], "fits", None, 0),
    "offload, 2 cards": ("llama70b", "offload", "generate", ["--gpu=a6000", "--gpus=2"], "fits", None, 0),
    "offload, 3 cards": ("llama70b", "offload", "generate", ["--gpu=rtx4090", "--gpus=3"], "fits", None, 0),
}  # fmt: skip
# Not run on sparse files here, and why.
ALONE = {
    "8b cast on the CPU": "sparse: 32 GB of fp32 in host memory",
    "70b cast on the CPU": "sparse: 282 GB of fp32 in host memory",
    "70b isnan on the CPU": "sparse: 141 GB to be read, over the limit of a run",
}


class Host:
    """The most that the processes with a mark held at once: their share of resident pages, and their page tables."""

    def __init__(self, mark):
        self.mark, self.most, self.over = mark, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(0.2):
            self.most = max(self.most, sum(map(self.held, runs.marked(self.mark))))

    @staticmethod
    def held(pid):
        kilobytes = 0
        for name, label in (("smaps_rollup", "Pss:"), ("status", "VmPTE:")):
            try:
                lines = pathlib.Path(f"/proc/{pid}/{name}").read_text().splitlines()
            except OSError:
                continue  # it has ended
            kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith(label))
        return kilobytes >> 10


def run(folder, case, weights, environment):
    model, load, work, options, *_ = CASES[case]
    mark, report = runs.new_mark(), folder.parent / "report.json"
    report.unlink(missing_ok=True)
    environment = {**os.environ, **environment, runs.MARK: mark, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [TONNAGE, "run", "--quiet", "--steps=all", f"--seconds={LIMIT - 20}", *options, *weights, "--json", report, "--",
               runs.python_of(OTHER.get(model, ENVIRONMENT)), HERE / "program.py", folder, load, work]  # fmt: skip
    with Host(mark) as host:
        status, seconds, printed, _ = runs.start(command, folder.parent, environment, LIMIT, folder.parent / "log")
    loaded = next((json.loads(line) for line in printed.splitlines() if line.startswith('{"loaded"')), {})
    return runs.document_at(report), loaded, host.most, seconds, status, printed


def figures(document):
    """Peaks by card: all that must be equal."""
    names = ("device_bytes", "reserved_bytes", "allocated_bytes", "requested_bytes")
    peaks = [document.get("peak")] + [card["peak"] for card in document.get("cards") or []]
    return [[peak.get(name) for name in names] for peak in peaks if peak]


def summary(places):
    """How many parts of the model lie where."""
    found = list(places.values())
    return " ".join(f"{place}:{found.count(place)}" for place in sorted(set(found)))


def said(compared, same):
    """yes or no, or nothing where one of two runs failed before there was anything to compare."""
    return ("no", "yes")[same] if compared else ""


def held(document):
    """The peaks of all cards together, in allocated bytes where there is one card (there are none of each card)."""
    cards = document.get("cards") or []
    peak = document.get("peak") or {}
    return sum(card["peak"]["device_bytes"] or 0 for card in cards) if len(cards) > 1 else peak.get("allocated_bytes") or 0


def highest(document):
    return max((figure[0] or 0 for figure in figures(document)), default=0)


def look(case, scratch):
    model, _, _, options, verdict, expected, least = CASES[case]

    def made(kind, environment):
        folder = scratch / kind / model
        if not folder.exists():
            words = [runs.python_of(ENVIRONMENT), HERE / "make.py", folder, model, kind]
            subprocess.run(words, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.DEVNULL)
        return run(folder, case, ["--weights=real"] if kind == "holes" else [], environment)

    results = made("headers", {}), None if case in ALONE else made("holes", {})
    (document, loaded, host, seconds, _, printed), sparse = results
    other, other_loaded, other_host, other_seconds, *_ = sparse or ({}, {}, "", 0)
    compared, unordered = [document, other], []
    if sparse and figures(document) != figures(other):
        again = made("headers", {})[0]
        if figures(again) != figures(document):
            unordered = sorted({highest(document), highest(again)}) + ["sparse", highest(other)]
            compared = [made(kind, IN_ORDER)[0] for kind in ("headers", "holes")]
    maps = [loaded.get("map"), other_loaded.get("map")]
    near = expected is None or verdict == "out_of_memory" or 0 <= loaded.get("requested", -1) - expected <= SMALL
    notes = [f"host memory over {HOST} MiB"] * (host > HOST) + [ALONE[name] for name in [case] if name in ALONE]
    if document.get("verdict") != verdict:
        text = (document.get("exception") or {}).get("text") or (printed.strip().splitlines() or [""])[-1]
        notes.append(" ".join(text.split())[:200])
    if sparse and other.get("verdict") != document.get("verdict"):
        notes.append(f"sparse: {other.get('verdict')}")
    return {
        "case": case, "options": " ".join(options), "verdict": document.get("verdict"), "expected_verdict": verdict,
        "device_bytes": highest(compared[0]), "allocated_bytes": (compared[0].get("peak") or {}).get("allocated_bytes"),
        "same_peak": said(all(map(highest, compared)), figures(compared[0]) == figures(compared[1])),
        "unordered": " ".join(map(str, unordered)), "sparse_device_bytes": highest(compared[1]) if sparse else "",
        "same_map": said(all(maps), maps[0] == maps[1]), "map": summary(loaded.get("map") or {}),
        "loaded_bytes": loaded.get("loaded"), "requested_bytes": loaded.get("requested"), "expected_loaded": expected,
        "as_expected": said(True, near and held(document) >= least and document.get("verdict") == verdict), "host_mib": host,
        "seconds": f"{seconds:.0f}", "sparse_host_mib": other_host, "sparse_seconds": f"{other_seconds:.0f}" if sparse else "",
        "note": "; ".join(notes),
    }  # fmt: skip


def main():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-weights-"))
    try:
        for case in CASES:
            if sys.argv[1:] and case not in sys.argv[1:]:
                continue
            row = look(case, scratch)
            print(row, flush=True)
            rows = {found["case"]: found for found in csv.DictReader(CSV.open())} if CSV.exists() else {}
            rows[case] = row
            with CSV.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows[key] for key in CASES if key in rows)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
