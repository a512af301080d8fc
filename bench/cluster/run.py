# SPDX-License-Identifier: Apache-2.0
"""`fit --vary` on clusters that are really there, against the same command without an engine.

    python bench/cluster/run.py [--ray PYTHON] [--slurm] [--points 300] [--out bench/results/cluster.csv]

--ray: two raylets on this machine, started with the ray beside PYTHON (`tools/envs --path prog-ray`) and ended at the end. The search is
interrupted (Ctrl-C) after a third of the grid, started again, and the second raylet killed after two thirds. --slurm: the cluster that sbatch finds
(tests/cluster/slurm starts one on this machine); an array of 20. Every combination is tried, and the documents have to be the same but for
seconds and how trials were started. `lost`: slices whose worker was lost, and that another one went on with; `made_twice`: trials made beyond those that the
table needs.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TONNAGE = os.environ.get("TONNAGE", str(ROOT / "build/bin/tonnage"))
PORT = 6397
ASIDE = ("seconds", "trials", "forked_trials", "not_forked_because")  # a fork that is compared with a new process counts as a trial


def grid(points):
    """Options for a grid of about so many points, near the edge of a card of 1 GiB."""
    lengths = max(2, round((points / 0.75) ** 0.5 * 0.75))
    batches = points // lengths
    return ["--gpu", "rtx3060", "--memory", "1GiB", "--all", "--vary", "batch=" + ",".join(str(2 * i) for i in range(1, batches + 1)),
            "--vary", "length=" + ",".join(str(16 * i) for i in range(1, lengths + 1))], batches * lengths  # fmt: skip


def command(folder, name, python, options, engine=()):
    if python == "fake":  # a FAKE program without PyTorch, for a look at the engines themselves
        fake = ROOT / "tests/cli/fake_program.py"
        program = ["python3", "-I", "-X", "tonnage=off", str(fake), '{"base": {length}, "sample": 20, "batch": 4}']
    else:
        program = [python, str(HERE / "program.py"), "--batch", "{batch}", "--length", "{length}"]
    return [TONNAGE, "fit", *options, *engine, "--json", str(folder / name), "--", *program]


def start(words, folder, env=None):
    return subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip


def table(text):
    """What a person reads, without our words on trials and seconds."""
    return [line for line in text.splitlines() if not line.startswith("tonnage: ") and " trials on a virtual GPU in " not in line]


def made(text):
    """(trials made, found, made again) as the command says."""
    found = re.search(r"(\d+) trials made, (\d+) found in [^,]*(?:, (\d+) made again)?", text)
    return [int(number or 0) for number in found.groups()] if found else [0, 0, 0]


def finish(process, folder, name):
    began = time.monotonic()
    words = process.communicate()[1]
    document = json.loads((folder / name).read_text()) if (folder / name).exists() else None
    return {"status": process.returncode, "words": words, "document": document, "seconds": time.monotonic() - began}


def wait_for(results, count, process):
    while process.poll() is None and len(list(results.glob("[0-9a-f]*"))) < count:
        time.sleep(0.2)


def same(one, other):
    strip = [{key: value for key, value in run["document"].items() if key not in ASIDE} for run in (one, other)]
    return strip[0] == strip[1] and json.dumps(strip[0]) == json.dumps(strip[1]) and table(one["words"]) == table(other["words"])


class Raylets:
    def __init__(self, python):
        self.ray = str(pathlib.Path(python).parent / "ray")
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        common = ["--num-cpus=1", "--disable-usage-stats", "--temp-dir=" + self.folder]
        self.run(["start", "--head", f"--port={PORT}", "--include-dashboard=false", *common])
        before = self.pids()
        self.run(["start", f"--address=127.0.0.1:{PORT}", *common])
        self.second = next(iter(self.pids() - before))

    def run(self, words):
        subprocess.run([self.ray, *words], check=True, capture_output=True)

    def pids(self):
        """The raylets that have our folder on their command line."""
        found = set()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if words.split(b"\0")[0].endswith(b"/raylet") and self.folder.encode() in words:
                found.add(int(entry.name))
        return found

    def stop(self):
        for entry in list(pathlib.Path("/proc").iterdir()):
            try:
                ours = entry.name.isdigit() and self.folder.encode() in (entry / "cmdline").read_bytes()
                if ours and int(entry.name) != os.getpid():
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


def ray(python, program, folder, options, points, alone):
    raylets = Raylets(python)
    env = {"TONNAGE_RAY_PYTHON": python}
    words = command(folder, "ray.json", program, options, ["--engine", f"ray=127.0.0.1:{PORT}", "--results", str(folder / "ray")])
    results, began = folder / "ray/results", time.monotonic()

    def note(what):
        print("%4.0f s: %s, %d results" % (time.monotonic() - began, what, len(list(results.glob("[0-9a-f]*")))), flush=True)

    try:
        process = start(words, folder, env)
        wait_for(results, points // 3, process)
        note("Ctrl-C")
        process.send_signal(signal.SIGINT)
        first = finish(process, folder, "ray.json")
        kept = len(list(results.glob("[0-9a-f]*")))
        note("it has ended; again")
        process = start(words, folder, env)
        wait_for(results, 2 * points // 3, process)
        os.kill(raylets.second, signal.SIGKILL)
        note("the second raylet is killed")
        second = finish(process, folder, "ray.json")
        seconds = time.monotonic() - began
        note("all is there")
        third = finish(start(words, folder, env), folder, "ray.json")
    finally:
        raylets.stop()
    print(first["words"], second["words"], third["words"], sep="\n")
    again = sum(log.read_text().count("a worker: ") > 1 for log in (folder / "ray/log").glob("*-*"))
    twice = made(first["words"])[0] + made(second["words"])[0] - second["document"]["trials"]
    return {"engine": "ray, two raylets", "status_interrupted": first["status"], "kept": kept, "made_after": made(second["words"])[0],
            "lost": again, "made_twice": twice, "same": same(alone, second) and same(alone, third) and made(third["words"])[0] == 0,
            "seconds": round(seconds)}  # fmt: skip


def slurm(program, folder, options, alone):
    words = command(folder, "slurm.json", program, options, ["--engine", "slurm", "--jobs", "20", "--results", str(folder / "slurm")])
    began = time.monotonic()
    run = finish(start(words, folder), folder, "slurm.json")
    elements = len(list((folder / "slurm/log").glob("slurm-*")))
    print(run["words"])
    return {"engine": f"slurm, an array of {elements}", "made_after": made(run["words"])[0], "lost": made(run["words"])[2], "made_twice": 0,
            "same": same(alone, run), "seconds": round(time.monotonic() - began)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program-python", default=sys.executable, help="a Python with a CUDA wheel of PyTorch; \"fake\": a program that is one")
    parser.add_argument("--ray", metavar="PYTHON")
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    options, points = grid(arguments.points)
    rows = []
    with tempfile.TemporaryDirectory(prefix="cluster-") as name:
        folder = pathlib.Path(name)
        began = time.monotonic()
        alone = finish(start(command(folder, "alone.json", arguments.program_python, options), folder), folder, "alone.json")
        print(alone["words"])
        rows.append({"engine": "none", "made_after": alone["document"]["trials"], "lost": 0, "made_twice": 0, "same": True,
                     "seconds": round(time.monotonic() - began)})  # fmt: skip
        if arguments.ray:
            rows.append(ray(arguments.ray, arguments.program_python, folder, options, points, alone))
        if arguments.slurm:
            rows.append(slurm(arguments.program_python, folder, options, alone))
    names = ["program", "engine", "points", "trials", "status_interrupted", "kept", "made_after", "lost", "made_twice", "same", "seconds"]
    for row in rows:
        row.update(program="a fake" if arguments.program_python == "fake" else "program.py", points=points, trials=alone["document"]["trials"])
        print(row)
    if arguments.out:
        there = list(csv.DictReader(open(arguments.out))) if os.path.exists(arguments.out) else []
        mine = {(row["program"], row["engine"], str(row["points"])) for row in rows}
        with open(arguments.out, "w", newline="") as out:
            writer = csv.DictWriter(out, names)
            writer.writeheader()
            writer.writerows([row for row in there if (row["program"], row["engine"], row["points"]) not in mine] + rows)
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
