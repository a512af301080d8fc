#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parameters, gradients and optimizer state of each rank against a count by hand, and ranks stood in for against the same ranks really run.

    bench/rank_counts.py [--show] [ROW ...]        ROW: as "fsdp2" or "fsdp2/4"

One build runs everything. The right answers are rank_formulas.py's and stand in ROWS, written before anything was run: what of the ranks stood in for (`--ranks`)
equals the same ranks really run, in peak, categories and communication, and whether the report may call it proven. With two ranks nothing proves it; a rank
that is unlike its representative has to be told as a bound. Writes bench/results/rank_counts.csv.
"""

import collections
import csv
import functools
import os
import pathlib
import sys
import tempfile

import rank_formulas as by_hand
from places import ENVIRONMENTS, PYTHON, ROOT, TONNAGE
from runs import MARK, commit, document_at, new_mark, start

CSV = ROOT / "bench/results/rank_counts.csv"
PROGRAMS = ROOT / "tests/vgpu/programs/ranks"
FIELDS = ["scheme", "variant", "ranks", "expected", "found", "equal", "stood_in", "run", "same_run", "same_stood_in", "said", "bucket", "right", "seconds", "build"]
MAIN, DEEPSPEED, TORCHTUNE = PYTHON, ENVIRONMENTS / "prog-ray/bin/python", ENVIRONMENTS / "prog-torchtune/bin/python"
ADAPTERS = 1023  # so many that the peak is in the update, where all of their gradients are

# Some: the ranks that are run in the second run. Alike: are all of the others as these (None: not said by hand)? Said: is that proven, or a bound, or does a call end the run that
# only a rank which is not run could answer?
Row = collections.namedtuple("Row", "scheme variant ranks python words formula some alike said bucket", defaults=[False])
FIRST, ENDS, EACH = "0", "0,1,3", "0,1,2"


def pair(scheme, variant, python, words, formula, answers, **more):
    """The same with two and with four ranks. answers: alike with 2, alike with 4, what is said with 4, where ranks 1 and 3 show what rank 2 does."""
    return [Row(scheme, variant, 2, python, words, formula, FIRST, answers[0], "bound", **more),
            Row(scheme, variant, 4, python, words, formula, ENDS, *answers[1:], **more)]  # fmt: skip


SAME, LAST_SHORT, FIRST_MORE = (True, True, "proven"), (False, True, "bound"), (False, True, "proven")
ROWS = [
    *pair("DDP", "", MAIN, ["sharded.py", "ddp"], by_hand.replicated, SAME),
    *pair("DDP", "gradients are views of buckets", MAIN, ["sharded.py", "ddp_view"], by_hand.replicated, SAME),
    *pair("DDP", "tied embedding", MAIN, ["sharded.py", "ddp", "tied"], by_hand.tied_replicated, SAME),
    *pair("FSDP1", "", MAIN, ["sharded.py", "fsdp1"], by_hand.flat, LAST_SHORT),
    *pair("FSDP1", "tied embedding", MAIN, ["sharded.py", "fsdp1", "tied"], by_hand.tied_flat, LAST_SHORT),
    *pair("FSDP2", "uneven rows", MAIN, ["sharded.py", "fsdp2"], by_hand.sharded_by_rows, LAST_SHORT),
    *pair("FSDP2", "uneven rows, tied embedding", MAIN, ["sharded.py", "fsdp2", "tied"], by_hand.tied_by_rows, LAST_SHORT),
    Row("FSDP2", "uneven rows", 5, MAIN, ["sharded.py", "fsdp2"], by_hand.sharded_by_rows, "0,1,3,4", True, "proven"),
    Row("FSDP2", "two copies of two uneven parts", 4, MAIN, ["sharded.py", "hybrid"], by_hand.hybrid, ENDS, True, "proven"),
    Row("FSDP2", "two copies of two uneven parts, the second copy's last rank left out", 4, MAIN, ["sharded.py", "hybrid"], by_hand.hybrid, EACH, True, "proven"),
    *pair("ZeRO-1", "ZeroRedundancyOptimizer", MAIN, ["sharded.py", "zero"], by_hand.zero_redundancy, SAME),
    *pair("ZeRO-1", "DeepSpeed, bucket of 1e6", DEEPSPEED, ["deepspeed_zero.py", "1", str(by_hand.SMALL_BUCKET)], functools.partial(by_hand.deepspeed, 1, by_hand.SMALL_BUCKET), FIRST_MORE),
    *pair("ZeRO-1", "DeepSpeed, bucket of 5e8", DEEPSPEED, ["deepspeed_zero.py", "1", str(by_hand.LARGEST_BUCKET)], functools.partial(by_hand.deepspeed, 1, by_hand.LARGEST_BUCKET), SAME, bucket=True),
    *pair("ZeRO-2", "DeepSpeed, bucket of 1e6", DEEPSPEED, ["deepspeed_zero.py", "2", str(by_hand.SMALL_BUCKET)], functools.partial(by_hand.deepspeed, 2, by_hand.SMALL_BUCKET), SAME),
    *pair("ZeRO-2", "DeepSpeed, bucket of 5e8", DEEPSPEED, ["deepspeed_zero.py", "2", str(by_hand.LARGEST_BUCKET)], functools.partial(by_hand.deepspeed, 2, by_hand.LARGEST_BUCKET), SAME, bucket=True),
    *pair("ZeRO-3", "DeepSpeed, bucket of 1e6", DEEPSPEED, ["deepspeed_zero.py", "3", str(by_hand.SMALL_BUCKET)], functools.partial(by_hand.deepspeed, 3, by_hand.SMALL_BUCKET), SAME),
    *pair("ZeRO-3", "DeepSpeed, bucket of 5e8", DEEPSPEED, ["deepspeed_zero.py", "3", str(by_hand.LARGEST_BUCKET)], functools.partial(by_hand.deepspeed, 3, by_hand.LARGEST_BUCKET), SAME, bucket=True),
    Row("TP 2", "", 2, MAIN, ["sharded.py", "tp2"], by_hand.tensor_parallel_of_two, FIRST, True, "bound"),
    Row("TP 2", "x FSDP2 of 2", 4, MAIN, ["sharded.py", "tp2"], by_hand.tensor_parallel_of_two, ENDS, True, "proven"),
    Row("TP 4", "", 4, MAIN, ["sharded.py", "tp"], by_hand.tensor_parallel, ENDS, True, "proven"),
    Row("pipeline 2", "GPipe", 2, MAIN, ["sharded.py", "pipeline"], by_hand.stage, FIRST, None, "bound"),
    Row("pipeline 2", "embedding first, output last", 2, MAIN, ["sharded.py", "ends"], by_hand.stage_with_ends, FIRST, None, "bound"),
    Row("pipeline 2", "x FSDP2 of 2, uneven rows", 4, MAIN, ["sharded.py", "pipeline2"], by_hand.stage_of_two, "0,2", False, "bound"),
    Row("pipeline 4", "two stages a rank, interleaved", 2, MAIN, ["sharded.py", "interleaved"], by_hand.stage, FIRST, None, "refused"),
    Row("pipeline 4", "GPipe", 4, MAIN, ["sharded.py", "pipeline"], by_hand.stage, ENDS, True, "bound"),
    Row("pipeline 4", "embedding first, output last", 4, MAIN, ["sharded.py", "ends"], by_hand.stage_with_ends, ENDS, True, "bound"),
    Row("pipeline 4", "1F1B", 4, MAIN, ["sharded.py", "1f1b"], by_hand.stage, ENDS, None, "bound"),
    *(Row("DataParallel", "gradients kept between steps", count, MAIN, ["data_parallel.py"], by_hand.data_parallel, None, None, None) for count in (2, 4)),
    *pair("QLoRA + FSDP2", f"{ADAPTERS} rows of adapters", TORCHTUNE, ["qlora.py", str(ADAPTERS)], functools.partial(by_hand.qlora, ADAPTERS), LAST_SHORT),
]  # fmt: skip
CURE = "reduce_bucket_size"


def run(row, folder, options=()):
    """(status, report, what it printed, seconds)"""
    launcher = [] if row.some is None else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", row.ranks]
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    words = [TONNAGE, "run", f"--gpus={row.ranks}", "--gpu=rtx4090", "--steps=all", *options, "--json", report, "--", row.python, *launcher, PROGRAMS / row.words[0], *row.words[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", MARK: new_mark()}
    status, seconds, printed, _ = start(words, folder, environment, 300, folder / "log")
    if "--show" in sys.argv or (status != 0 and not options):
        print(printed[-4000:])
    return status, document_at(report), printed, seconds


def held(entry):
    """What a rank or card holds of the three, where the report knows."""
    categories = (entry.get("at_peak") or {}).get("by_category") or {}
    return tuple(categories.get(name) for name in ("parameters", "gradients", "optimizer_state"))


def figures(all_held):
    return " ".join("/".join(map(str, each)) for each in all_held)


def compared(some, every):
    """(those run are the same, those stood in for are the same), of two reports of one job."""
    same_run = same_stood_in = True
    for one, other in zip(some["ranks"], every["ranks"], strict=True):
        if one["same_as"] is None:
            same_run = same_run and all(one[name] == other[name] for name in ("peak", "at_peak", "communication"))
        else:
            same_stood_in = same_stood_in and one["peak"] == other["peak"] and held(some["ranks"][one["same_as"]]) == held(other)
    return same_run, same_stood_in


def bucket_is_told(document, printed):
    """The bucket is counted as communication, and what makes it smaller is named."""
    counted = all(rank["at_peak"]["by_category"]["communication"] >= by_hand.FLOAT * by_hand.LARGEST_BUCKET for rank in document["ranks"])
    return counted and CURE in printed and any(finding["id"] == "zero_buckets" for finding in document["findings"])


def measure(row, folder):
    expected = [row.formula(rank, row.ranks) for rank in range(row.ranks)]
    status, every, printed, seconds = run(row, folder)
    found = [held(entry) for entry in every.get("cards" if row.some is None else "ranks", [])]
    right = [status == 0, found == expected]
    said = {"scheme": row.scheme, "variant": row.variant, "ranks": row.ranks, "expected": figures(expected), "found": figures(found), "equal": found == expected,
            "stood_in": "", "run": "", "same_run": "", "same_stood_in": "", "said": "", "bucket": "", "build": commit()}  # fmt: skip
    if row.bucket and status == 0:
        said["bucket"] = bucket_is_told(every, printed)
        right.append(said["bucket"])
    if row.some is not None and status == 0:
        status, some, _, more = run(row, folder, [f"--ranks={row.some}"])
        seconds += more
        said |= {"stood_in": row.ranks - len(row.some.split(",")), "run": row.some}
        if status == 0:
            same_run, same_stood_in = compared(some, every)
            proven = some["job"]["proven"] and some["bound"] is None
            said |= {"same_run": same_run, "same_stood_in": same_stood_in, "said": "proven" if proven else "bound"}
            right += [same_run, row.alike in (None, same_stood_in)]
        elif some and some["coverage"]["refused_calls"]:
            said["said"] = "refused"  # in one line, with the rank to add
        right.append(said["said"] == row.said)
    named = {True: "yes", False: "no"}
    return {name: named.get(value, value) if isinstance(value, bool) else value for name, value in {**said, "right": all(right), "seconds": f"{seconds:.0f}"}.items()}


def wanted(row):
    asked = [word.lower() for word in sys.argv[1:] if not word.startswith("--")]
    return not asked or any(f"{row.scheme}/{row.ranks}".lower().startswith(word) for word in asked)


def main():
    key = ("scheme", "variant", "ranks")
    kept = {}
    if CSV.exists():
        with CSV.open(newline="") as file:
            kept = {tuple(row[name] for name in key): row for row in csv.DictReader(file)}
    for row in ROWS:
        if not wanted(row):
            continue
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(row, pathlib.Path(folder))
        kept[tuple(str(measured[name]) for name in key)] = measured
        print({name: value for name, value in measured.items() if name not in ("expected", "found") or measured["equal"] == "no"}, flush=True)
        with CSV.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept[name] for name in ((each.scheme, each.variant, str(each.ranks)) for each in ROWS) if name in kept)


if __name__ == "__main__":
    main()
