#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large jobs of many ranks: seconds, and memory of this machine.

    bench/many_ranks/run.py [NAME ...]

`largest_mib` is the most that one process of the job had resident, `together_mib` the most that all had at a time with shared
pages counted once for each group of them (PSS), looked at five times a second and by `cores` processors at most. Writes bench/results/many_ranks.csv.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from places import PYTHON, ROOT, TONNAGE  # noqa: E402
from runs import MARK, commit, document_at, end_all, marked, new_mark  # noqa: E402

CSV = ROOT / "bench/results/many_ranks.csv"
FIELDS = ["job", "goal", "verdict", "peak_gib", "ranks", "ranks_run", "seconds", "largest_mib", "together_mib", "load", "build"]
JOBS = {  # goal, options of tonnage, of torchrun, of the program
    "70b_fsdp2": ("40 s and 700 MiB a rank", ["--gpus=8"], ["--standalone", "--nproc-per-node=8"], ["70b", "fsdp"]),
    "405b_tp_fsdp2": ("180 s and 12 GiB in all", ["--nodes=16", "--gpus=8"], ["--nnodes=16", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400"], ["405b", "tp"]),
    "7b_ddp_1024": ("60 s", ["--nodes=128", "--gpus=8"], ["--nnodes=128", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400"], ["7b", "ddp"]),
}  # fmt: skip


def figure(pid, file, name):
    try:
        for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) >> 10
    except (OSError, ValueError):
        pass
    return 0


def run(name):
    goal, options, launcher, words = JOBS[name]
    mark, most, together, looked = new_mark(), 0, 0, 0.0
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        report, log = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "log"
        command = [TONNAGE, "run", "--quiet", "--gpu=h200", *options, "--json", report, "--", PYTHON, "-m", "torch.distributed.run", *launcher, HERE / "llama.py", *words]  # fmt: skip
        began = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", MARK: mark},
                                   stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        while process.poll() is None and time.monotonic() - began < 460:
            if time.monotonic() - looked > 1:
                pids, looked = list(marked(mark)), time.monotonic()
                most = max([most, *(figure(pid, "status", "VmHWM") for pid in pids)])
                together = max(together, sum(figure(pid, "smaps_rollup", "Pss:") for pid in pids))
            time.sleep(0.2)
        seconds = time.monotonic() - began
        if process.poll() is None:
            process.terminate()
        process.wait(30)
        end_all(mark)
        document, said = document_at(report), log.read_text()
    if not document or "--show" in sys.argv:
        print(said[-4000:])
    return {"job": name, "goal": goal, "verdict": document.get("verdict"), "peak_gib": f"{document.get('peak', {}).get('device_bytes', 0) / (1 << 30):.1f}",
            "ranks": (document.get("job") or {}).get("ranks") or len(document.get("ranks") or []), "ranks_run": sum(row.get("same_as") is None for row in document.get("ranks") or []),
            "seconds": f"{seconds:.0f}", "largest_mib": most, "together_mib": together, "load": f"{load:.1f}", "build": commit()}  # fmt: skip


def main():
    kept = {row["job"]: row for row in csv.DictReader(CSV.open())} if CSV.exists() else {}
    for name in [word for word in sys.argv[1:] if not word.startswith("--")] or JOBS:
        kept[name] = run(name)
        print(kept[name], flush=True)
        with CSV.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept[each] for each in JOBS if each in kept)


if __name__ == "__main__":
    main()
