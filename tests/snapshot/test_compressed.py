# SPDX-License-Identifier: Apache-2.0
"""Real snapshots as gzip and zstd write them: every figure, and what is cut."""

import gzip
import pickle
import shutil
import subprocess

import pytest
from test_snapshot import compare

WHEELS = [pytest.param("torch-2.6.0", marks=pytest.mark.long), "torch-2.15.0"]
TOOLS = {"gzip -9": ".gz", "zstd -1": ".zst", "zstd --ultra -22 --long=27": ".zst", "zstd --no-check -19": ".zst"}


def packed_by(tool, path, suffix):
    words = tool.split()
    if not shutil.which(words[0]):
        pytest.skip(f"no {words[0]} here (make deps)")
    target = path.with_name(path.name + suffix)
    with open(target, "wb") as output:
        subprocess.run([*words, "-c", path], stdout=output, check=True)
    return target


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("wheel", WHEELS)
def test_every_figure(dump, recorded, tmp_path, wheel, tool):
    path = tmp_path / "dump.pickle"
    path.write_bytes((recorded(wheel) / "dump.pickle").read_bytes())
    compare(dump(packed_by(tool, path, TOOLS[tool])), pickle.loads(path.read_bytes()))


def test_members_in_a_row(dump, recorded, tmp_path):
    """What several appends by Python's gzip leave."""
    whole = (recorded("torch-2.15.0") / "dump.pickle").read_bytes()
    path = tmp_path / "dump.pickle.gz"
    for start in range(0, len(whole), 10000):
        with gzip.open(path, "ab") as file:
            file.write(whole[start : start + 10000])
    compare(dump(path), pickle.loads(whole))


@pytest.mark.parametrize("tool", ["gzip -6", "zstd -3"])
def test_cut_files(dump_program, recorded, tmp_path, tool):
    path = tmp_path / "dump.pickle"
    path.write_bytes((recorded("torch-2.15.0") / "dump.pickle").read_bytes())
    whole = packed_by(tool, path, ".packed").read_bytes()
    for size in [*range(8, len(whole), len(whole) // 41), len(whole) - 1]:
        path.write_bytes(whole[:size])
        done = subprocess.run([dump_program, path], capture_output=True, text=True)
        assert done.returncode == 1, size
        assert f"dump.pickle: the {tool.split()[0]} data ends in the middle, at byte {size} of the file" in done.stderr
