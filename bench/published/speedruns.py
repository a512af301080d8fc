#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peaks of modded-nanogpt's records on 8 H100, as their logs tell them, beside those of the same scripts on virtual cards.

    bench/published/speedruns.py [RECORD...]

MODDED_NANOGPT_SOURCE is a checkout of github.com/KellerJordan/modded-nanogpt (f411b3d3 here). A record's log begins with the script that made it, which
is run unchanged, with made tokens; it ends with `peak memory allocated: ... reserved: ...` of rank 0. Each compiles its model, FlexAttention among it, trains
with Muon over 8 ranks, and validates on sequences four times as long before its first step. Ranks 0 and 1 of the eight are run, for 28 updates of an
optimizer, which are a record's warm-up, that validation and its first steps. The wheels of the records are builds of a night that
nobody has any more; the nearest release that is supported stands in for each. The published figures were written down before anything was run. Of what was written
down four could not be run to their first step in the time that there was, on 2 cores: 2024-12-17, 2025-01-04 (with 2.6.0), 2025-01-26 and 2025-08-23 (with 2.11.0), which
compile for more than five minutes. That of July is 10 % below what was told, and why is not known; logs of one script of that month tell 33,277 and 33,644.

Writes bench/results/speedruns.csv, MiB.
"""

import array
import csv
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

CSV = ROOT / "bench/results/speedruns.csv"
PEAK = re.compile(r"^peak memory (?:consumption|allocated): (\d+) MiB(?: reserved: (\d+) MiB)?", re.MULTILINE)
WHEEL = re.compile(r"^Running py.*?torch (\S+) compiled", re.MULTILINE | re.IGNORECASE)
RECORDS = {  # folder below records -> environment
    "2025-05-24_StableTorch": "torch-2.11.0",
    "2025-07-18_TritonMuon": "torch-2.11.0",
}
DOCUMENT_STARTS, EVERY = 50256, 611


def log_of(record):
    """The first of a record's logs by name."""
    source = pathlib.Path(os.environ["MODDED_NANOGPT_SOURCE"])
    [folder] = source.glob(f"records/*/{record}")
    return min(path for path in folder.rglob("*") if path.suffix in (".txt", ".log")).read_text()


def write_tokens(path, count):
    tokens = array.array("H", [DOCUMENT_STARTS if i % EVERY == 0 else i * 7919 % 50000 for i in range(count)])
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        tokens.tofile(file)


def run(record, script, folder):
    data = folder / "data/fineweb10B"
    data.mkdir(parents=True)
    write_tokens(data / "fineweb_val_000000.bin", 10485760 + 32768)
    for number in (1, 2):
        write_tokens(data / f"fineweb_train_{number:06}.bin", 20_000_000)
    (folder / "logs/final").mkdir(parents=True)
    (folder / "train_gpt.py").write_text(script)
    command = [ENVIRONMENTS / RECORDS[record] / "bin/torchrun", "--standalone", "--nproc_per_node=8", "train_gpt.py"]
    began = time.monotonic()
    done = subprocess.run([TONNAGE, "run", "--gpu=h100", "--gpus=8", "--ranks=0,1", "--steps=28", "--seconds=900", f"--json={folder}/report.json", "--", *command],
                          cwd=folder, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))  # fmt: skip
    report = folder / "report.json"
    document = json.loads(report.read_text()) if report.exists() and report.stat().st_size else {"verdict": done.stderr[-200:], "ranks": []}
    return document, time.monotonic() - began


def row_of(record):
    text = log_of(record)
    script, _, output = text.partition("=" * 100 + "\n")
    allocated, reserved = PEAK.search(output).groups()
    with tempfile.TemporaryDirectory() as folder:
        document, seconds = run(record, script, pathlib.Path(folder))
    peak = next((rank["peak"] for rank in document["ranks"] if rank["rank"] == 0), None)
    row = {"record": record, "wheel": WHEEL.search(output)[1], "run_with": RECORDS[record], "verdict": document["verdict"], "seconds": f"{seconds:.0f}"}
    for name, published in (("allocated", allocated), ("reserved", reserved)):
        found = peak[f"{name}_bytes"] / 2**20 if peak else None
        row[name] = published or ""
        row[f"{name}_found"] = f"{found:.0f}" if peak else ""
        row[f"{name}_off"] = f"{100 * (found / int(published) - 1):+.1f} %" if peak and published else ""
    return row


def main():
    if "MODDED_NANOGPT_SOURCE" not in os.environ:
        print("MODDED_NANOGPT_SOURCE is not set: a checkout of github.com/KellerJordan/modded-nanogpt", file=sys.stderr)
        return 2
    build = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    rows = {row["record"]: row for row in csv.DictReader(CSV.open())} if CSV.exists() else {}
    for record in sys.argv[1:] or RECORDS:
        rows[record] = {**row_of(record), "build": build}
        print(rows[record], flush=True)
        with CSV.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[record]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[key] for key in RECORDS if key in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
