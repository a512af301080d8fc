# SPDX-License-Identifier: Apache-2.0
"""Results that are kept, and trials that workers make, on the engine that is a fake: processes of this machine (src/trials/engines.c). Ray and
Slurm as they are: tests/cluster."""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import sys

import pytest
from command import FAKES, HERE, wait_until

GRID = ["--vary", "batch=1..16", "--vary", "length=16,64,128"]  # 15 combinations
ASIDE = ("seconds", "trials", "forked_trials", "not_forked_because")
WISH = '{"base": 10, "sample": {length}, "batch": 4}'


@pytest.fixture
def fit(tonnage):
    """fit(*options, wish=WISH) -> words; fit.run(*options) -> (finished command, document)."""

    class Fit:
        def words(self, *options, wish=WISH, program=None, grid=GRID):
            program = program or [*FAKES, str(HERE / "fake_program.py"), wish]
            return ["fit", "--gpu", "rtx3060", "--memory", "1GiB", "--json", tonnage.cwd / "out.json", *grid, *options, "--", *program]

        def run(self, *options, timeout=200, **more):
            out = tonnage.cwd / "out.json"
            out.unlink(missing_ok=True)
            done = tonnage(*self.words(*options, **more), timeout=timeout)
            assert tonnage.left_behind() == [] and tonnage.processes() == [], done.stderr
            return done, json.loads(out.read_text()) if out.exists() else None

    return Fit()


def alike(one, other):
    return {key: value for key, value in one.items() if key not in ASIDE} == {key: value for key, value in other.items() if key not in ASIDE}


def table(done):
    """All but what it took, which is one line or two, and tonnage's own."""
    shown = re.sub(r"(?m)^  .* trials on a virtual GPU .*(\n    .*)*", "", done.stderr)
    return [line for line in shown.splitlines() if not line.startswith("tonnage: ")]


def workers(tonnage):
    """Pids of `tonnage __trials`."""
    found = []
    for pid in tonnage.processes():
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            above = pathlib.Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"__trials"] and above[1:2] == [b"fit"]:
            found.append(pid)
    return found


def results(tonnage, folder="tonnage-results"):
    return sorted(path for path in (tonnage.cwd / folder / "results").glob("*") if len(path.name) == 32)


def test_the_table_is_that_of_one_machine_and_is_found_again(fit, tonnage):
    here, alone = fit.run("--all")
    there, away = fit.run("--all", "--engine", "processes")
    assert here.returncode == there.returncode == 0, there.stderr
    assert alike(alone, away) and table(here) == table(there)
    assert all(point["tried"] for point in away["cards"][0]["points"])
    assert f"processes: {away['trials']} trials made, 0 found" in there.stderr
    before = {path: path.stat().st_mtime_ns for path in results(tonnage)}
    again, third = fit.run("--all", "--engine", "processes")
    assert alike(alone, third) and f"0 trials made, {away['trials']} found" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in results(tonnage)} == before
    _, local = fit.run("--results", "tonnage-results")  # without an engine, too
    assert local["cards"][0]["rows"] == alone["cards"][0]["rows"]
    rows = list(csv.DictReader(open(tonnage.cwd / "tonnage-results/results.csv")))
    assert len(rows) == len(before) == len({row["key"] for row in rows})
    fitting = [point["peak_device_bytes"] for point in alone["cards"][0]["points"] if point["verdict"] == "fits"]
    assert sorted(int(row["device_peak_bytes"]) for row in rows if row["verdict"] == "fits" and row["memory_bytes"] != "unlimited") == sorted(fitting)


def test_a_worker_that_dies_has_its_trials_made_again(fit, tonnage):
    _, alone = fit.run("--all")
    out = tonnage.cwd / "out.json"
    out.unlink()
    process = tonnage.start(*fit.words("--all", "--engine", "processes"))
    assert wait_until(lambda: len(results(tonnage)) >= 4, 60)
    (first, *_) = wait_until(lambda: workers(tonnage), 10)
    os.kill(first, signal.SIGKILL)
    stderr = process.communicate(timeout=200)[1]
    assert process.returncode == 0 and "because a worker was lost" in stderr, stderr
    assert alike(alone, json.loads(out.read_text()))
    wait_until(lambda: not tonnage.processes() and not tonnage.left_behind())
    assert tonnage.processes() == [] and tonnage.left_behind() == []


def test_interrupted_and_resumed(fit, tonnage):
    _, alone = fit.run("--all")
    process = tonnage.start(*fit.words("--all", "--engine", "processes"))
    assert wait_until(lambda: len(results(tonnage)) >= 4, 60)
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=100)[1]
    assert process.returncode == 130 and "goes on from there" in stderr, stderr
    wait_until(lambda: not tonnage.processes() and not tonnage.left_behind())
    assert tonnage.processes() == [] and tonnage.left_behind() == []
    kept = len(results(tonnage))
    assert 4 <= kept < alone["trials"]
    done, document = fit.run("--all", "--engine", "processes")
    made = document["trials"] - kept
    assert f"{made} trials made, {kept} found" in done.stderr and alike(alone, document)


def test_a_worker_that_always_dies_ends_the_trial_and_not_the_search(fit, tonnage):
    """Here by files that are other ones than the command's: workers refuse."""
    process = tonnage.start(*fit.words("--all", "--engine", "processes", grid=["--vary", "batch=1,2"], wish=WISH.replace("{length}", "16")))
    wait_until(lambda: (tonnage.cwd / "tonnage-results/fingerprint").exists())
    (tonnage.cwd / "tonnage-results/fingerprint").write_text("another")
    stderr = process.communicate(timeout=100)[1]
    assert process.returncode == 125 and "trials could not be made" in stderr, stderr
    logs = [path.read_text() for path in (tonnage.cwd / "tonnage-results/log").iterdir()]
    assert any("this machine has other files" in log for log in logs)
    assert [path for path in results(tonnage)] != []  # of the first trial, which the command makes


def test_results_are_of_the_same_files_only(fit, tonnage):
    folder = tonnage.cwd / "job"
    folder.mkdir()
    for name in ("fake_program.py", "fake_trial.py", "fake_guest.py"):
        shutil.copy(HERE / name, folder)
    program = [*FAKES, "job/fake_program.py", WISH]
    done, document = fit.run("--results", "kept", program=program)
    assert done.returncode == 0 and f"{document['trials']} trials made, 0 found" in done.stderr, done.stderr
    with open(folder / "fake_guest.py", "a") as out:
        out.write("# edited\n")
    done, _ = fit.run("--results", "kept", program=program)
    assert ", 0 found" in done.stderr
    done, _ = fit.run("--results", "kept", program=program)
    assert ": 0 trials made, " in done.stderr
    done, document = fit.run("--results", "kept", wish=WISH.replace("10", "11"))
    assert done.returncode == 2 and document is None and "another command line" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_result_that_is_torn_is_made_again(fit, tonnage):
    alone = ("--results", "kept", "--jobs", "1")  # so that both runs ask for the same trials
    fit.run(*alone)
    torn, empty, *_ = results(tonnage, "kept")
    torn.write_bytes(torn.read_bytes()[:200])
    empty.write_bytes(b"")
    done, _ = fit.run(*alone)
    assert done.returncode == 0 and "2 trials made, " in done.stderr, done.stderr


def test_fix(tonnage):
    """Through the same door: its first entry is that of one machine."""
    possible = [{"id": name, "title": name, "results": "same", "values": [None]} for name in ("foreach", "zero_grad")]
    wish = {"base": 1500, "saves": {"zero_grad": 800, "foreach": 100}, "possible": possible}
    program = [*FAKES, str(HERE / "fake_program.py"), json.dumps(wish)]
    first = []
    for engine in ([], ["--engine", "processes"]):
        out = tonnage.cwd / "out.json"
        done = tonnage("fix", "--gpu", "rtx3060", "--memory", "1GiB", "--json", out, *engine, "--", *program, timeout=200)
        assert done.returncode == 0, done.stderr
        first.append(json.loads(out.read_text())["changes"][0])
        assert tonnage.processes() == [] and tonnage.left_behind() == []
    assert first[0] == first[1] and first[0]["id"] == "zero_grad"


def test_fit_of_a_batch(fit):
    documents = [fit.run(*engine, grid=[], wish='{"base": 10, "sample": 30, "batch": 4}')[1] for engine in ([], ["--engine", "processes"])]
    largest = [[card["largest_batch"] for card in document["cards"]] for document in documents]
    assert largest[0] == largest[1] and largest[0][0] > 0


@pytest.mark.parametrize("options, status, said", [
    (["--engine", "kubernetes"], 2, "--engine is ray, ray=ADDRESS or slurm"),
    (["--engine", "slurm=here"], 2, "takes no address"),
    (["--dry-run"], 2, "--dry-run needs --engine slurm"),
    (["--engine", "ray", "--dry-run"], 2, "--dry-run needs --engine slurm"),
    (["--engine", "processes", "--gpu", "auto"], 2, "--engine needs --gpu NAME"),
    (["--engine", "slurm"], 127, "sbatch was not found"),
    (["--engine", "ray"], 127, "pip install ray"),
    (["--results", "/proc/nowhere"], 2, "cannot be made"),
])  # fmt: skip
def test_what_is_not_there_is_said_in_a_line(fit, tonnage, options, status, said):
    tonnage.env["PATH"] = str(pathlib.Path(sys.executable).parent)  # no sbatch
    tonnage.env["TONNAGE_RAY_PYTHON"] = "/usr/bin/false"  # which has no ray
    done, document = fit.run(*options)
    assert done.returncode == status and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert document is None


@pytest.mark.parametrize("jobs, last", [(10, 9), (20, 15)])  # no more of them than there are trials
def test_the_script_for_slurm(fit, tonnage, jobs, last):
    done, document = fit.run("--all", "--engine", "slurm", "--dry-run", "--jobs", str(jobs))
    assert done.returncode == 0 and document is None and not (tonnage.cwd / "tonnage-results").exists()
    lines = done.stdout.splitlines()
    assert lines[0] == "#!/bin/sh" and f"#SBATCH --array=0-{last}" in lines and f'#SBATCH --chdir="{tonnage.cwd}"' in lines
    assert lines[-1].startswith("exec '") and " __trials " in lines[-1] and lines[-1].endswith("SLURM_ARRAY_TASK_ID))")


def test_all_needs_vary(tonnage):
    done = tonnage("fit", "--all", "--", "true")
    assert done.returncode == 2 and "--all needs --vary" in done.stderr
