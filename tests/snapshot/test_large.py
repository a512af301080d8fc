# SPDX-License-Identifier: Apache-2.0
"""Large snapshots, made of a real one by enlarge.py: every figure, sums, and host memory."""

import gzip
import json
import pickle
import subprocess
import sys
import time

import pytest
from enlarge import enlarge
from test_snapshot import compare

MIB = 1 << 20
GIB = 1 << 30


def test_every_figure_of_an_enlarged_one(dump, recorded, tmp_path):
    """The generator writes what Python reads, and the reader what Python makes of it."""
    path = tmp_path / "large.pickle"
    sums = enlarge(recorded("torch-2.15.0") / "dump.pickle", path, 3_000_000)
    loaded = pickle.loads(path.read_bytes())
    dumped = dump(path)
    assert path.stat().st_size > 2_500_000
    assert dumped["sums"] == sums
    compare(dumped, loaded)


# A small process between: a child's peak counts from what its parent held.
RUNNER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=sys.stdout)
_, status, usage = os.wait4(process.pid, 0)
sys.stderr.write("%d %d" % (status, usage.ru_maxrss * 1024))
"""


def measured(program, path):
    """The summary, seconds and the peak of resident memory of the whole process."""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", RUNNER, program, "--summary", path], capture_output=True,
                          text=True, check=True)  # fmt: skip
    status, peak = map(int, done.stderr.split()[-2:])
    assert status == 0, done.stderr
    return json.loads(done.stdout), time.monotonic() - start, peak


@pytest.mark.parametrize("wheel", ["torch-2.6.0", "torch-2.15.0"])
def test_memory_follows_events(dump_program, recorded, tmp_path, wheel):
    """100 MB, plain and packed: a third of the file's size, where pickle.load takes several times as much."""
    path, packed = tmp_path / "large.pickle", tmp_path / "large.pickle.gz"
    sums = enlarge(recorded(wheel) / "dump.pickle", path, 100_000_000)
    with gzip.open(packed, "wb", 1) as file:
        file.write(path.read_bytes())
    for file in path, packed:
        summary, _, peak = measured(dump_program, file)
        assert summary["sums"] == sums
        assert peak < 48 * MIB


@pytest.mark.long
def test_four_gigabytes(dump_program, recorded, tmp_path):
    """A file of 4 GB, within 2 GiB of host memory and the reader's own limits."""
    path = tmp_path / "large.pickle"
    sums = enlarge(recorded("torch-2.11.0") / "dump.pickle", path, 4_000_000_000)
    try:
        summary, seconds, peak = measured(dump_program, path)
        size = path.stat().st_size
    finally:
        path.unlink()
    print(f"{size / 1e9:.2f} GB, {sum(sums['actions'])} events: {seconds:.0f} s, peak {peak / MIB:.0f} MiB")
    assert size > 3_900_000_000
    assert summary["sums"] == sums
    assert peak < 2 * GIB
