# SPDX-License-Identifier: Apache-2.0
"""Ten of the quick programs of bench/programs end with the verdict and the peak that their row of the table says; the others are
run by `make long` (bench/programs/run.py), and here by name with --long.
"""

import os
import pathlib
import sys
import tempfile
import types

import pytest
from conftest import ENVIRONMENTS, MAIN, ROOT, TEMPORARY
from fork_servers import can_fork

sys.path.insert(0, str(ROOT / "bench/programs"))
import report  # noqa: E402
import run as bench  # noqa: E402

FORKED = True  # ../fork_servers.py
ROWS = bench.programs()
# Of the quick ones, what another shows, too: the same program with another optimizer, batch, size or card, or another network of
# the same library.
ALIKE = {"trainer_adamw_fused", "trainer_adafactor", "trainer_sgd", "trainer_adamw_rtx4060", "lora_7b_eval",
         "generate_tinyllama_sample", "fabric_tinyllama", "fasterrcnn_b4", "retinanet_b4", "whisper_hf_train"}  # fmt: skip


def cases():
    for row in ROWS:
        often = row.get("quick") and row["name"] not in ALIKE
        yield pytest.param(row, id=row["name"], marks=[] if often else [pytest.mark.long])


def left_behind():
    """Processes of runs of this process: they have their folders in their environment, or files of theirs mapped. A fork server may have
    a cache beside them."""
    folders = os.fsencode(TEMPORARY.name + "/tonnage-")
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "environ").read_bytes() + (process / "maps").read_bytes()
        except OSError:
            continue  # it has ended meanwhile, or is somebody else's
        if folders in seen:
            yield process


def start(row, folder, tonnage):
    """As bench.start; what can be forked is, and nobody waits for what it would need."""
    words = bench.words_of(row, folder)
    environment = row.get("environment", {})
    if row["env"] != MAIN or not can_fork(words, environment):
        return bench.start(row, types.SimpleNamespace(patience=3), folder)
    done = tonnage(MAIN, words[1:], f"--gpu={row['gpu']}", *row.get("options", []), cwd=folder, env=environment, timeout=3 * bench.SECONDS)
    return done.status, done.report, 0, done.stdout + done.stderr, len(list(left_behind()))


@pytest.mark.parametrize("row", list(cases()))
def test_a_program_has_the_verdict_that_was_written_down(row, tonnage):
    if not bench.runs.python_of(row["env"]).exists():
        pytest.skip(f"environment {row['env']} is missing: tools/envs {row['env']}")
    with tempfile.TemporaryDirectory() as folder:
        status, document, seconds, text, left = start(row, pathlib.Path(folder), tonnage)
    result = {"status": status, "report": document, "seconds": seconds}
    judgement = report.judge(row, result)
    assert judgement.right, f"{judgement.why}\n{text[-6000:]}"
    assert left == 0, f"{left} processes were left behind"


def test_the_table_is_whole():
    assert len(ROWS) >= 60
    assert sum(bool(row.get("quick")) for row in ROWS) >= 20
    assert ALIKE < {row["name"] for row in ROWS if row.get("quick")} and len(ALIKE) == 10
    for row in ROWS:
        assert row["expect"] in ("fits", "out_of_memory", "grows", "failed", "undecided"), row["name"]
        assert len(row["reason"]) > 20 and row["packages"], row["name"]
        assert (ROOT / f"tools/requirements/{row['env']}.txt").exists(), row["name"]
        assert ("peak" in row) == (row["expect"] == "fits"), row["name"]


def test_the_quick_ones_need_no_environment_but_the_tests_own():
    assert {row["env"] for row in ROWS if row.get("quick")} == {ENVIRONMENTS.joinpath("torch-2.11.0").name}
