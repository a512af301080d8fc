#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the measured runs of measured.csv on the virtual GPU and writes results.csv, one line a measured run.

    bench/accuracy/run.py                  everything that has not been run since the program was built
    bench/accuracy/run.py --only gpt2      the models whose name holds "gpt2"; the other lines stay as they are
    bench/accuracy/run.py --transformers   no convolutional nets
    bench/accuracy/run.py --large          transformers of batch 20 or more, in minutes

Needs the environment torch-2.6.0 (tools/envs torch-2.6.0) and a built Tonnage. Answers are kept in build/accuracy, by
configuration; a newer build/bin/tonnage or library makes them old. See README.md for what is compared with what.
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import statistics
import subprocess
import sys

from models import ALWAYS_FULL

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import moments  # noqa: E402
from places import ENVIRONMENTS, ROOT, TONNAGE  # noqa: E402

CACHE = ROOT / "build/accuracy"
GPUS = {"RTX 3060": "rtx3060", "RTX 4060": "rtx4060", "A100-SXM4-40GB": "a100-40"}
FULL = "128,128,128,128"
# Batches below this were padded to lengths that nobody recorded: a range over a few plausible orders is given.
SMALL_BATCH = 20
ORDERS = [FULL, "96,128,128,128", "64,128,128,128", "128,96,128,128", "96,112,128,128", "96,96,96,96", "64,64,64,64"]
ORDERS_OF_SINGLE_LINES = [*ORDERS, "16,128,32,64", "16,16,16,16"]
FIELDS = [
    "model", "kind", "optimizer", "batch_size", "zero_grad_variant", "gpu", "ground_bytes", "real_oom", "verdict",
    "verdict_right", "our_bytes", "error_percent", "range_low_bytes", "range_high_bytes", "ground_in_range",
    "xmem_error_percent", "adds_up", "named_percent", "lowest_bytes", "highest_bytes", "within_bounds",
    "bounds_percent_of_card", "narrowly", "our_allocated_bytes", "our_reserved_bytes", "our_workspaces_bytes",
    "our_libraries_bytes", "seconds", "host_bytes", "xmem_seconds",
]


def variant_of(row):
    return row["zero_grad_variant"] if row["zero_grad_variant"] in ("1", "2") else "0"


def orders_of(row):
    """The orders of batch lengths to try; the first one gives the answer."""
    batch = int(row["batch_size"])
    if row["kind"] == "cnn":
        return [""]
    if batch >= SMALL_BATCH or row["model"] in ALWAYS_FULL or row["real_oom"] == "true":
        return [FULL]
    return ORDERS if batch > 1 else ORDERS_OF_SINGLE_LINES


def built_at():
    """When what decides an answer was last built."""
    files = [TONNAGE.resolve(), *TONNAGE.resolve().parent.parent.rglob("*.so*"), HERE / "job.py", HERE / "models.py",
             *(ROOT / "python/tonnage/guest").rglob("*.py")]
    return max(path.stat().st_mtime for path in files if path.exists())


def measure(row, order, newest):
    """Runs one configuration; returns the report, from the cache when it is new enough."""
    words = [row["model"], row["optimizer"], row["batch_size"], variant_of(row), *([order] if order else [])]
    kept = CACHE / ("_".join([GPUS[row["gpu"]], *words]).replace("/", "-") + ".json")
    if kept.exists() and kept.stat().st_mtime > newest:
        return json.loads(kept.read_text())
    python = ENVIRONMENTS / "torch-2.6.0/bin/python"
    fresh = kept.with_suffix(".part")
    command = [TONNAGE, "run", "--quiet", "--steps=all", f"--gpu={GPUS[row['gpu']]}", "--json", fresh, "--"]
    done = subprocess.run([*command, python, HERE / "job.py", *words], cwd=CACHE, capture_output=True, text=True)
    try:
        report = json.loads(fresh.read_text())
    except (OSError, ValueError):
        report = {"verdict": "failed"}
    if report["verdict"] not in ("fits", "out_of_memory"):
        print(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-3000:]}", file=sys.stderr)
        return report
    fresh.replace(kept)
    return report


def our_bytes(report):
    """What a job took beyond the bare context: PyTorch's segments and what libraries took themselves."""
    device = (report.get("peak") or {}).get("device_bytes")
    return None if device is None else device - report["gpu"]["context_bytes"]


def bounds_of(report):
    """Our bounds of the same bytes: what the report says may be less and more, but for the context itself."""
    parts = [part for part in report.get("uncertainty_parts") or () if part["part"] != "context"]
    ours = our_bytes(report)
    if ours is None or not parts:
        return None
    return ours - sum(part["below_bytes"] for part in parts), ours + sum(part["above_bytes"] for part in parts)


def parts_of(report):
    """What our run knows of the bytes, and what it took to find out."""
    peak, host = report["peak"], report["host"]
    moment = (report.get("at_peak") or {}).get("by_category") or {}
    return {
        "our_allocated_bytes": peak["allocated_bytes"], "our_reserved_bytes": peak["reserved_bytes"],
        "our_workspaces_bytes": moment.get("workspaces"), "our_libraries_bytes": moment.get("libraries"),
        "seconds": f"{host['seconds']:.1f}", "host_bytes": host["peak_rss_bytes"],
    }  # fmt: skip


def percent(ours, ground):
    return "" if ours is None else f"{100 * (ours - ground) / ground:+.2f}"


def result_line(row, reports):
    ground = int(row["ground_bytes"])
    verdict = reports[0]["verdict"]
    died = row["real_oom"] == "true"
    line = {field: row[field] for field in FIELDS if field in row}
    line["verdict"] = verdict
    right, named = moments.check(reports)
    line["adds_up"], line["named_percent"] = str(right).lower(), f"{100 * named:.2f}"
    line["verdict_right"] = str((verdict == "out_of_memory") == died and verdict != "failed").lower()
    if died or verdict != "fits":
        return line
    sizes = [our_bytes(report) for report in reports if report["verdict"] == "fits"]
    line["our_bytes"] = sizes[0]
    line.update(parts_of(reports[0]))
    line["error_percent"] = percent(sizes[0], ground)
    bounds = bounds_of(reports[0])
    if bounds:
        line["lowest_bytes"], line["highest_bytes"] = bounds
        line["within_bounds"] = str(bounds[0] <= ground <= bounds[1]).lower()
        whole = reports[0]["uncertainty_bytes"]
        line["bounds_percent_of_card"] = f"{100 * (whole[1] - whole[0]) / reports[0]['gpu']['total_bytes']:.2f}"
        line["narrowly"] = str(reports[0]["narrowly"]).lower()
    if len(reports) > 1:
        line["range_low_bytes"], line["range_high_bytes"] = min(sizes), max(sizes)
        line["ground_in_range"] = str(min(sizes) * 0.99 <= ground <= max(sizes) * 1.01).lower()
    if row["xmem_bytes"]:
        line["xmem_error_percent"] = percent(int(row["xmem_bytes"]), ground)
    return line


def spread(errors):
    if not errors:
        return "nothing"
    sizes = sorted(abs(error) for error in errors)
    p90 = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    median, mean = statistics.median(sizes), statistics.mean(sizes)
    return (f"median {median:.2f} %, mean {mean:.2f} %, 90 % of them up to {p90:.2f} %, worst {sizes[-1]:.2f} % "
            f"(n = {len(sizes)})")


def short_name(line):
    return f"{line['model']} {line['optimizer']} {line['batch_size']} {line['gpu']}"


def errors_of(lines, field="error_percent"):
    return [float(line[field]) for line in lines if line.get(field)]


def tell_bounds(lines):
    """How often the measured bytes lie within the bounds that a person is told, and how wide those are."""
    told = [line for line in lines if line.get("within_bounds")]
    if told:
        inside, narrowly = (sum(line[field] == "true" for line in told) for field in ("within_bounds", "narrowly"))
        widest = max(float(line["bounds_percent_of_card"]) for line in told)
        print(f"    within our bounds: {inside} of {len(told)}; the bounds span at most {widest:.2f} % of the card; "
              f"'narrowly' is said of {narrowly}")


def tell_cost(lines):
    """What an answer takes, ours beside the published estimator's own figure."""
    ours, theirs = ([float(line[field]) for line in lines if line.get(field)] for field in ("seconds", "xmem_seconds"))
    hosts = [int(line["host_bytes"]) for line in lines if line.get("host_bytes")]
    if ours and theirs:
        print(f"seconds for an answer: median {statistics.median(ours):.1f}, longest {max(ours):.1f}, in at most "
              f"{max(hosts) / 2**20:.0f} MiB of host memory; xMem, on its machine: median {statistics.median(theirs):.1f}, "
              f"longest {max(theirs):.1f}")


def summarize(lines):
    transformers = [line for line in lines if line["kind"] == "transformer"]
    large = [line for line in transformers if int(line["batch_size"]) >= SMALL_BATCH]
    small = [line for line in transformers if int(line["batch_size"]) < SMALL_BATCH]
    pictures = [line for line in lines if line["kind"] == "cnn"]
    for name, group in (
        (f"transformers, batch {SMALL_BATCH} or more", large),
        ("other transformers", small),
        ("convolutional nets", pictures),
    ):
        print(f"{name}: {spread(errors_of(group))}")
        print(f"    xMem on the same rows: {spread(errors_of(group, 'xmem_error_percent'))}")
        tell_bounds(group)
        for gpu in sorted({line["gpu"] for line in group}):
            print(f"    on {gpu}: {spread(errors_of([line for line in group if line['gpu'] == gpu]))}")
    for line in large:
        if line.get("error_percent") and abs(float(line["error_percent"])) > 1:
            print(f"    beyond 1 %: {short_name(line)}: {line['error_percent']} %")
    tell_cost(lines)
    ranges = [line for line in lines if line.get("ground_in_range")]
    inside = sum(line["ground_in_range"] == "true" for line in ranges)
    print(f"random short batches: {inside} of {len(ranges)} measured peaks lie within our range (1 % allowed)")
    died = [line for line in lines if line["real_oom"] == "true" and line.get("verdict")]
    lived = [line for line in lines if line["real_oom"] == "false" and line.get("verdict")]
    counted = [line for line in lines if line.get("adds_up")]
    print(f"categories add up to the byte in {sum(line['adds_up'] == 'true' for line in counted)} of {len(counted)} rows; of "
          f"live tensors' bytes at least {min(float(line['named_percent']) for line in counted):.2f} % have a line")
    for name, group in (("out of memory", died), ("fits", lived)):
        right = sum(line["verdict_right"] == "true" for line in group)
        print(f"verdicts where the real run was '{name}': {right} of {len(group)} right")
        for line in group:
            if line["verdict_right"] != "true":
                print(f"    wrong: {short_name(line)}: {line['verdict']}")


def key_of(row):
    return (row["model"], row["optimizer"], row["batch_size"], variant_of(row), row["gpu"])


def wanted(row, options):
    if options.large and int(row["batch_size"]) < SMALL_BATCH:
        return False
    return options.only in row["model"] and not ((options.transformers or options.large) and row["kind"] == "cnn")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose name holds this")
    parser.add_argument("--transformers", action="store_true", help="leave the convolutional nets out")
    parser.add_argument("--large", action="store_true", help=f"transformers of batch {SMALL_BATCH} or more alone (minutes)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--fresh", action="store_true", help="forget the answers kept in build/accuracy")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results.csv")
    options = parser.parse_args()

    with open(HERE / "measured.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file)]
    old = {}
    if options.output.exists():
        with open(options.output, newline="") as file:
            old = dict(enumerate(csv.DictReader(file)))
    CACHE.mkdir(parents=True, exist_ok=True)
    newest = float("inf") if options.fresh else built_at()

    tasks = {}
    for row in rows:
        if wanted(row, options):
            for order in orders_of(row):
                tasks[key_of(row), order] = row
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(measure, row, key[1], newest): key for key, row in tasks.items()}
        answers = {}
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            key = futures[future]
            answers[key] = future.result()
            print(f"[{number}/{len(tasks)}] {' '.join(key[0])} {key[1]}: {answers[key]['verdict']}", file=sys.stderr)

    lines = []
    for number, row in enumerate(rows):
        if wanted(row, options):
            lines.append(result_line(row, [answers[key_of(row), order] for order in orders_of(row)]))
        else:
            lines.append(old.get(number, {field: row[field] for field in FIELDS if field in row}))
    with open(options.output, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    summarize(lines)


if __name__ == "__main__":
    main()
