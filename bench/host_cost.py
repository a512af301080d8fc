#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a virtual run costs the host: seconds and resident memory of each job of tests/vgpu/jobs, and of large models.

    bench/host_cost.py [--repeat 5] [--only TEXT] [--large] [--plain]

A job's `extra_seconds` is what `tonnage run` takes from start to end beyond a bare Python that imports the same
packages (the top-level imports of the script, nothing else). `late_seconds` is what the packages import later, when the
script uses them, as on any machine: torch._dynamo when an optimizer is made, a model's own module when it is built. The
bare Python imports these after the others, and `own_seconds` is what the run takes beyond both. The same run with
--no-detail tells what naming every byte costs: `detail_seconds` beyond that run, `detail_share` of its extra seconds,
`detail_bytes` of the largest resident set. Runs with, without and bare alternate. `extra_seconds`, `late_seconds` and
`own_seconds` are medians of the differences within a turn.
`least_extra_seconds` and the figures of naming take the quickest run of each kind: what a machine that is busy with
others adds is above zero, and on a small machine larger than what naming costs. `resident_bytes` is the largest
resident set of any one process of the run, `together_bytes` the supervisor's own figure for the program. The cache is
warm: one run that is not counted goes first. One large model runs again with RLIMIT_DATA at 12 GiB, which counts
private writable memory as a kernel that refuses overcommit does. The jobs ending in `_full` are not cut to what a test
needs: hf_trainer_full writes 2 GB of checkpoints, lightning_full makes 480 pictures on the CPU, and both would without
Tonnage.
`loop_ns` is what the machine was like: a turn of an empty loop of this Python, beside each run (50 where nothing else
runs on a processor of today).
--plain leaves out the runs without naming, a third of the time: what naming costs stays in the table as it was
measured last.
Writes bench/results/host_cost.csv.
"""

import argparse
import ast
import csv
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import moments
from places import PYTHON, ROOT, TONNAGE

HERE = pathlib.Path(__file__).resolve().parent
JOBS = ROOT / "tests/vgpu/jobs"
MIB = 1 << 20
FIELDS = [
    "job", "verdict", "seconds", "import_seconds", "extra_seconds", "least_extra_seconds", "late_seconds", "own_seconds",
    "detail_seconds", "detail_share", "resident_bytes", "detail_bytes", "together_bytes", "device_bytes",
    "adds_up", "named_percent", "loop_ns",
]
FULL = ["hf_trainer_full", "lightning_full"]
# name, options, the words after python, limit of private memory
LARGE = [
    ("llama-7b on h200", ["--gpu=h200"], ["llama.py", "7b"], None),
    ("llama-70b on 1400 GiB", ["--gpu=h200", "--memory=1400GiB"], ["llama.py", "70b"], None),
    ("llama-70b, 12 GiB private memory", ["--gpu=h200", "--memory=1400GiB"], ["llama.py", "70b"], 12 << 30),
]


def imports_of(script):
    """The top-level import statements of a script, as a program of their own."""
    tree = ast.parse(script.read_text())
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))


def late_imports(command, cwd):
    """Names of the modules of packages that a run of ours loads, in their order; most are in the script's own imports.

    Python's standard library is left out: our hook uses it, too.
    """
    command = [str(word) for word in command]
    position = command.index(str(PYTHON)) + 1
    words = [*command[:position], "-X", "importtime", *command[position:]]
    lines = subprocess.run(words, cwd=cwd, capture_output=True, text=True).stderr.splitlines()
    names = [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]
    ours = {"_tonnage_guest", "imported package", "__main__"}
    return [name for name in names if name.partition(".")[0] not in ours | sys.stdlib_module_names]


def bare_program(script, late):
    """Imports what the script does, writes how many seconds that took to the file given, then imports the rest."""
    return f"""
import time
_started = time.monotonic()
{imports_of(script)}
_late = time.monotonic()
import contextlib, importlib, sys
for _name in {late!r}:
    with contextlib.suppress(Exception):
        importlib.import_module(_name)
open(sys.argv[1], "w").write(str(time.monotonic() - _late))
"""


def timed(command, cwd, limit=None):
    """Seconds of a command and the largest resident set of its processes; its output is dropped.

    With a limit of private memory it gets the library that Tonnage loads by itself where the kernel refuses overcommit.
    """
    environment = dict(os.environ)
    if limit:
        environment["LD_PRELOAD"] = str(TONNAGE.resolve().parent.parent / "lib/tonnage/libtonnage-lean.so")

    def restrict():
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    with tempfile.TemporaryDirectory(dir=cwd) as scratch:  # a run's files go before the next one writes its own
        environment["TMPDIR"] = scratch
        started = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=restrict, env=environment,
        )
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # it has been waited for
        return time.monotonic() - started, usage.ru_maxrss * 1024


def loop_nanoseconds(turns=1_000_000):
    started, count = time.monotonic(), 0
    for turn in range(turns):
        count += turn
    return (time.monotonic() - started) / turns * 1e9


def median_difference(some, others):
    """The median of what each turn's first figure is above its second."""
    return statistics.median(one - other for one, other in zip(some, others))


def measure(name, options, words, script, repeat, limit=None, plain=False):
    with tempfile.TemporaryDirectory() as folder:
        report_path, late_path = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "late"
        run = [TONNAGE, "run", "--quiet", "--steps=all", *options]
        late = late_imports([*run, "--", PYTHON, *words], folder)
        kinds = {
            "with": ([*run, "--json", report_path, "--", PYTHON, *words], limit),
            "without": ([*run, "--no-detail", "--", PYTHON, *words], limit),
            "bare": ([PYTHON, "-c", bare_program(script, late), late_path], None),
        }
        if plain:
            del kinds["without"]
        rows, loops, late_seconds = {kind: [] for kind in kinds}, [], []
        for turn in range(repeat + 1):
            for kind, (command, its_limit) in kinds.items():
                row = timed(command, folder, its_limit)
                loops.append(loop_nanoseconds())
                if turn > 0:  # the first run warms the cache
                    rows[kind].append(row)
            if turn > 0:
                late_seconds.append(float(late_path.read_text()))
        report = json.loads(report_path.read_text()) if report_path.exists() else {"verdict": "failed"}
    seconds = {kind: [row[0] for row in rows[kind]] for kind in kinds}
    loaded, seconds["bare"] = seconds["bare"], [both - late for both, late in zip(seconds["bare"], late_seconds)]
    resident = {kind: [row[1] for row in rows[kind]] for kind in kinds}
    least = {kind: min(seconds[kind]) for kind in kinds}
    right, named = moments.check([report])
    return {
        "job": name,
        "verdict": report["verdict"],
        "seconds": f"{statistics.median(seconds['with']):.2f}",
        "import_seconds": f"{statistics.median(seconds['bare']):.2f}",
        "extra_seconds": f"{median_difference(seconds['with'], seconds['bare']):.2f}",
        "least_extra_seconds": f"{least['with'] - least['bare']:.2f}",
        "late_seconds": f"{statistics.median(late_seconds):.2f}",
        "own_seconds": f"{median_difference(seconds['with'], loaded):.2f}",
        "resident_bytes": max(resident["with"]),
        "together_bytes": (report.get("host") or {}).get("peak_rss_bytes"),
        "device_bytes": (report.get("peak") or {}).get("device_bytes"),
        "adds_up": str(right).lower(),
        "named_percent": f"{100 * named:.2f}",
        "loop_ns": f"{statistics.median(loops):.0f}",
        **({} if plain else cost_of_naming(least, resident)),
    }


def cost_of_naming(least, resident):
    seconds = least["with"] - least["without"]
    return {
        "detail_seconds": f"{seconds:.2f}",
        "detail_share": f"{seconds / max(least['without'] - least['bare'], 0.01):.2f}",
        "detail_bytes": int(median_difference(resident["with"], resident["without"])),
    }


def tasks(options):
    if not options.large:
        for script in sorted(JOBS.glob("*.py")):
            card = ["--gpu=a100-80"] + (["--memory=4GiB"] if script.stem == "retry_smaller" else [])
            yield script.stem, card, [script], script, options.repeat, None
        for name in FULL:
            script = HERE / f"{name}.py"
            yield name, ["--gpu=a100-80"], [script], script, options.repeat, None
    for name, card, words, limit in LARGE:
        yield name, card, [HERE / words[0], *words[1:]], HERE / words[0], options.repeat, limit


def kept_lines(path):
    """The lines of an earlier run, by job: what is not measured this time stays as it was."""
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        return {line["job"]: line for line in csv.DictReader(file)}


def print_total(lines):
    """The figures over all jobs that are not large."""
    if not lines:
        return
    extra, late, detail = (
        sum(float(line.get(field, 0)) for line in lines)
        for field in ("least_extra_seconds", "late_seconds", "detail_seconds")
    )
    beyond_script, beyond_all = (detail / max(base - detail, 0.01) for base in (extra, extra - late))
    print(f"{len(lines)} jobs: largest resident set {max(line['resident_bytes'] for line in lines) / MIB:.0f} MiB, longest "
          f"{max(float(line['extra_seconds']) for line in lines):.2f} s beyond the script's imports, "
          f"{max(float(line['own_seconds']) for line in lines):.2f} s beyond all imports; by the quickest runs naming took "
          f"{detail:.2f} s of {extra:.2f} s beyond the script's imports, {beyond_script:.0%} more ({beyond_all:.0%} more of "
          f"what is beyond all imports), and at most "
          f"{max(int(line.get('detail_bytes', 0)) for line in lines) / MIB:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="jobs whose name holds this")
    parser.add_argument("--plain", action="store_true", help="without what naming costs")
    parser.add_argument("--large", action="store_true", help="the large models alone")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results/host_cost.csv")
    options = parser.parse_args()
    results, lines = kept_lines(options.output), []
    for name, card, words, script, repeat, limit in tasks(options):
        if options.only not in name:
            continue
        line = {**results.get(name, {}), **measure(name, card, words, script, repeat, limit, options.plain)}
        lines.append(line)
        results[name] = line
        print(
            f"{name:34} {line['verdict']:14} {line['seconds']:>6} s, imports {line['import_seconds']:>5} s, "
            f"extra {line['extra_seconds']:>5} s (at least {line['least_extra_seconds']}, late imports {line['late_seconds']}, "
            f"own {line['own_seconds']}, naming {line.get('detail_seconds', '?')} s), "
            f"{line['resident_bytes'] / MIB:5.0f} MiB resident (naming {int(line.get('detail_bytes', 0)) / MIB:.0f}), "
            f"categories {'add up' if line['adds_up'] == 'true' else 'DO NOT ADD UP'}, {line['named_percent']} % named",
            flush=True,
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results.values())
    print_total([line for line in lines if (JOBS / f"{line['job']}.py").exists()])
    return 0 if all(line["verdict"] == "fits" for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
