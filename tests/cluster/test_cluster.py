# SPDX-License-Identifier: Apache-2.0
"""--engine ray and slurm on clusters that are there: two raylets, and Debian's Slurm, both on this machine (`make long`). The tables are those of
one machine; a node is killed, and Ctrl-C resumed, by bench/cluster/run.py, which is called with a small grid."""

import csv
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def bench(tmp_path, *options, env=None):
    out = tmp_path / "cluster.csv"
    words = [sys.executable, str(ROOT / "bench/cluster/run.py"), "--program-python", "fake", "--points", "48", "--out", str(out), *options]
    done = subprocess.run(words, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(csv.DictReader(open(out)))[-1]


def test_ray(tmp_path):
    path = subprocess.run([ROOT / "tools/envs", "--path", "prog-ray"], capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.exists(path):
        pytest.skip("the environment prog-ray is not made: tools/envs prog-ray")
    row = bench(tmp_path, "--ray", path)
    assert row["same"] == "True" and row["status_interrupted"] == "130" and int(row["kept"]) >= 16
    assert int(row["made_twice"]) <= 2  # what was under way on the node that was killed, and when the command was interrupted


@pytest.fixture
def slurm(tmp_path):
    missing = subprocess.run([HERE / "slurm", "missing"], capture_output=True, text=True, check=True).stdout.split()
    if missing:
        pytest.skip("Slurm cannot be started here: " + ", ".join(missing) + " (Debian: slurmctld slurmd slurm-client munge)")
    done = subprocess.run([HERE / "slurm", "start", tmp_path / "slurm"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("Slurm does not start here: " + done.stderr[-300:])
    yield done.stdout.strip()
    subprocess.run([HERE / "slurm", "stop", tmp_path / "slurm"], check=True)


def test_slurm(tmp_path, slurm):
    row = bench(tmp_path, "--slurm", env={"SLURM_CONF": slurm})
    assert row["same"] == "True" and row["engine"] == "slurm, an array of 20" and row["made_twice"] == "0"
