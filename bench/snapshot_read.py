#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of reading a large snapshot: the C reader against Python's pickle, on the same file.

    bench/snapshot_read.py [--mb 100] [--repeat 5] [--python PYTHON] [--from SNAPSHOT] [--keep FILE] [--record]

The file is a real snapshot (of tests/snapshot/programs/record.py under `tonnage run`, or --from) whose trace is
repeated, with its own times and its own lists of frames, as PyTorch writes them. The C reader's time is that of a
whole process which also sums up every event and prints what held the memory; pickle's is that of pickle.load alone.
Peaks are of the whole process. Best time of --repeat runs; the sums of both must agree. --record writes
bench/results/snapshot_read.csv, a row for each size in MB.
"""

import argparse
import csv
import json
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/bench"
RESULTS = ROOT / "bench/results/snapshot_read.csv"
COLUMNS = ["mb", "seconds", "peak_mib", "pickle_seconds", "pickle_peak_mib", "times_as_fast", "times_less_memory"]
MIB = 1 << 20

LOAD = """
import json, pickle, sys, time
start = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    top = pickle.load(file)
seconds = time.perf_counter() - start
if len(sys.argv) > 2:
    events = [event for trace in [*top["device_traces"], top.get("host_traces", [])] for event in trace]
    sums = {"addresses": sum(e.get("addr", e.get("device_free", 0)) for e in events) % (1 << 64),
            "sizes": sum(e["size"] for e in events) % (1 << 64),
            "times": sum(e["time_us"] for e in events) % (1 << 64),
            "frames": sum(len(e.get("frames", ())) for e in events), "events": len(events)}
else:
    sums = None
print(json.dumps({"seconds": seconds, "sums": sums}))
"""


def build_reader():
    flags = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG",
             "-DTONNAGE_TESTS=ON"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *flags], **quiet)
    subprocess.run(["cmake", "--build", BUILD, "--target", "snapshot_dump"], **quiet)
    return BUILD / "tests/snapshot_dump"


def record(python, folder):
    command = [ROOT / "build/bin/tonnage", "run", "--quiet", "--gpu", "rtx3060", "--writes", "allow", "--steps", "all",
               "--", python, ROOT / "tests/snapshot/programs/record.py", folder]
    subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "dump.pickle"


def repeated(trace, times):
    """The trace again and again; frames stay shared, lists of frames and all figures are new objects."""
    length = trace[-1]["time_us"] - trace[0]["time_us"] + 1
    for round_number in range(times):
        for event in trace:
            yield {**event, "time_us": event["time_us"] + round_number * length,
                   "frames": list(event.get("frames", ()))}


def enlarge(source, target, size):
    top = pickle.loads(source.read_bytes())
    trace = top["device_traces"][0]
    for times in (10, None):
        count = times or max(1, round(10 * size / target.stat().st_size))
        top["device_traces"] = [list(repeated(trace, count))]
        with open(target, "wb") as file:
            pickle.dump(top, file)


def measured(command):
    """Output, seconds and peak resident bytes of a process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{command[0]} ended with {process.returncode}")
        output.seek(0)
        return json.loads(output.read()), seconds, usage.ru_maxrss * 1024


def best(runs):
    return min(run[1] for run in runs), max(run[2] for run in runs)


def check_sums(ours, theirs):
    ours["events"] = sum(ours.pop("actions"))
    if ours != theirs:
        sys.exit(f"the sums differ: {ours} and {theirs}")


def compare(reader, path, repeat):
    read = [measured([reader, "--summary", path]) for _ in range(repeat)]
    loaded = []
    for _ in range(max(1, repeat // 2)):
        result, _, peak = measured([sys.executable, "-c", LOAD, path])
        loaded.append((result, result["seconds"], peak))
    check_sums(read[0][0]["sums"], measured([sys.executable, "-c", LOAD, path, "sums"])[0]["sums"])
    return best(read), best(loaded)


def record_row(row):
    """Replaces the row of the same size."""
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    rows = sorted([*(old for old in rows if old["mb"] != str(row["mb"])), row], key=lambda each: int(each["mb"]))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--python", help="of an environment with torch; default: torch-2.11.0 of tools/envs")
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    python = options.python or subprocess.run([ROOT / "tools/envs", "--path", "torch-2.11.0"], capture_output=True,
                                              text=True).stdout.strip()
    reader = build_reader()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = options.keep or folder / "large.pickle"
        if not (options.keep and options.keep.exists()):
            path.touch()
            # In a process of its own: a child's peak counts from what its parent held.
            arguments = options.source or record(python, folder), path, options.mb * 1_000_000
            process = multiprocessing.Process(target=enlarge, args=arguments)
            process.start()
            process.join()
        size = path.stat().st_size
        (seconds, peak), (pickle_seconds, pickle_peak) = compare(reader, path, options.repeat)
    print(f"{size / 1e6:.0f} MB, Python {sys.version.split()[0]}")
    for name, took, most in ("tonnage", seconds, peak), ("pickle.load", pickle_seconds, pickle_peak):
        print(f"  {name:<11}  {took:7.3f} s  {size / 1e6 / took:6.0f} MB/s  peak {most / MIB:7.1f} MiB")
    faster, smaller = round(pickle_seconds / seconds, 1), round(pickle_peak / peak, 1)
    print(f"  {faster} times as fast, 1/{smaller} of the memory")
    if options.record:
        figures = [round(size / 1e6), round(seconds, 3), round(peak / MIB, 1), round(pickle_seconds, 3),
                   round(pickle_peak / MIB, 1), faster, smaller]  # fmt: skip
        record_row(dict(zip(COLUMNS, figures)))


if __name__ == "__main__":
    main()
