#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each launcher with two ranks, or one process with two cards: does `tonnage run --gpus 2` see all of it?

    bench/launchers/run.py [NAME ...]

Writes bench/results/launchers.csv: the command, its verdict, seconds, and the ranks and cards that were seen. A launcher that is not
installed has a row that says so; rows that were not run are kept. DeepSpeed and Ray are those of the environment prog-ray; for srun, SLURM_CONF names a
Slurm (tests/cluster/slurm starts one).
"""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import ENVIRONMENTS, PYTHON, ROOT, TONNAGE  # noqa: E402

CSV = ROOT / "bench/results/launchers.csv"
FIELDS = ["launcher", "command", "verdict", "status", "seconds", "ranks", "cards", "peaks_mib", "seen"]
OTHERS = {"deepspeed": "prog-ray", "Ray": "prog-ray"}  # environments of launchers that are not in that of the others
PROGRAMS = {
    "torchrun": ["torchrun", "--standalone", "--nproc-per-node", "2", "ddp.py"],
    "torch.distributed.run": ["python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ddp.py"],
    "accelerate launch": ["accelerate", "launch", "--multi_gpu", "--num_processes", "2", "by_accelerate.py"],
    "deepspeed": ["deepspeed", "--num_gpus", "2", "ddp.py"],
    "mp.spawn": ["python", "spawn.py"],
    "Lightning ddp": ["python", "by_lightning.py"],
    "Ray": ["python", "by_ray.py"],
    "DataParallel": ["python", "one_process.py", "dp"],
    "device_map=auto": ["python", "one_process.py", "map", "model"],
    "layers by hand": ["python", "one_process.py", "hand"],
    "srun": ["srun", "-n", "2", "python", "ddp.py"],
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "python", "ddp.py"],
}


def folder_of(name):
    """Where the programs of a launcher's environment are."""
    return ENVIRONMENTS / OTHERS[name] / "bin" if name in OTHERS else PYTHON.parent


def missing(name, words):
    """Why a launcher cannot be run here, or None."""
    own = folder_of(name)
    if name in OTHERS and not own.exists():
        return f"not run: no environment {OTHERS[name]} (tools/envs {OTHERS[name]})"
    if not (own / words[0]).exists() and not shutil.which(words[0]):
        return f"not run: {words[0]} is not installed"
    if words[0] == "srun" and subprocess.run(["sinfo"], capture_output=True).returncode:
        return "not run: no Slurm controller answers"
    return None


def run(name, words):
    own = folder_of(name)
    command = [str(own / word) if (own / word).exists() else word for word in words]
    with tempfile.TemporaryDirectory() as folder:
        for path in HERE.glob("*.py"):
            shutil.copy(path, folder)
        report = pathlib.Path(folder) / "report.json"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        began = time.monotonic()
        done = subprocess.run([TONNAGE, "run", "--quiet", "--gpus=2", "--gpu=rtx4090", "--json", report, "--", *command], cwd=folder,
                              env=environment, capture_output=True, text=True, timeout=300)  # fmt: skip
        seconds = time.monotonic() - began
        document = json.loads(report.read_text()) if report.exists() and report.stat().st_size else {}
    ranks, cards = document.get("ranks") or [], document.get("cards") or []
    peaks = [card["peak"]["device_bytes"] >> 20 for card in cards]
    seen = f"{len(ranks)} ranks" if ranks else f"one process, {sum(peak > 0 for peak in peaks)} cards in use"
    if document.get("exception"):
        seen = document["exception"]["text"][:200]
    elif not document:
        seen = (done.stderr.strip().splitlines() or ["no report"])[-1][:200]
    return {"verdict": document.get("verdict"), "status": done.returncode, "seconds": f"{seconds:.0f}", "ranks": len(ranks),
            "cards": len(cards), "peaks_mib": " ".join(map(str, peaks)), "seen": seen}  # fmt: skip


def main():
    rows = {row["launcher"]: row for row in csv.DictReader(CSV.open())} if CSV.exists() else {}
    for name, words in PROGRAMS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        why = missing(name, words)
        found = {"verdict": "", "seen": why} if why else run(name, words)
        rows[name] = {"launcher": name, "command": "tonnage run --gpus 2 -- " + " ".join(words), **found}
        print(name, found, flush=True)
        with CSV.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[key] for key in PROGRAMS if key in rows)


if __name__ == "__main__":
    main()
