# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` and `tonnage fit` on real programs: what they print, done by hand to a copy, fits, and saves what was shown
to the byte."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import ROOT, TEMPORARY, TONNAGE, python_of, run_tonnage

EXAMPLES = ROOT / "examples"
ENVIRONMENT = "torch-2.11.0"


def command(name, options, program, cwd, arguments=()):
    """The finished command and its document."""
    out = cwd / ("%s.json" % name)
    words = [str(TONNAGE), name, "--gpu", "rtx3060", "--json", str(out), *options, "--", python_of(ENVIRONMENT), program,
             *arguments]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TMPDIR": TEMPORARY.name}
    done = subprocess.run(words, cwd=cwd, env=environment, timeout=600, capture_output=True, text=True)
    return done, json.loads(out.read_text()) if out.exists() else {}


@pytest.fixture
def copy(tmp_path):
    """A copy of the examples, to be patched."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("demo", "__pycache__"))
    return folder


def check_again(copy, program, change, unchanged, env=None):
    """The program with the change made by hand: it fits, and takes what was shown."""
    again = run_tonnage(["--gpu", "rtx3060"], [python_of(ENVIRONMENT), program], copy, env)
    assert again.verdict == "fits", again.explain()
    assert again.report["peak"]["reserved_bytes"] == change["peak_reserved_bytes"], again.explain()
    assert unchanged["peak_device_bytes"] - again.device_bytes == change["saved_bytes"], again.explain()


PATCHED = [
    pytest.param("zero_grad_late.py", "zero_grad", id="zero_grad"),
    pytest.param("dataset_on_gpu.py", "data_on_host", id="data_on_host", marks=pytest.mark.long),
    pytest.param("finetune.py", "accumulate=4", id="accumulate", marks=pytest.mark.long),
    pytest.param("eval_with_graph.py", "no_grad", id="no_grad", marks=pytest.mark.long),
    pytest.param("foreach_temporaries.py", "fused", id="fused", marks=pytest.mark.long),
]


@pytest.mark.parametrize("program, cure", PATCHED)
def test_the_printed_patch_fits_and_saves_what_was_shown(copy, program, cure):
    patch = copy / "fix.patch"
    done, document = command("fix", ["--seconds=1", "--patch", str(patch)], program, copy)
    assert done.returncode == 0, done.stderr[-6000:]
    first = document["changes"][0]
    assert first["id"] == cure and first["enough"] and first["saved_bytes"] > 0, done.stderr[-6000:]
    assert patch.read_text() == first["patch"]
    subprocess.run(["patch", "-p0", "--silent", "-i", str(patch)], cwd=copy, check=True)
    check_again(copy, program, first, document["unchanged"])


def test_the_printed_setting_fits_and_saves_what_was_shown(copy):
    done, document = command("fix", ["--seconds=1"], "fragmented.py", copy)
    first = document["changes"][0]
    assert first["id"] == "alloc=expandable_segments:True" and first["enough"], done.stderr[-6000:]
    name, value = first["how"].split()[1].split("=", 1)
    check_again(copy, "fragmented.py", first, document["unchanged"], {name: value})


@pytest.mark.long
def test_the_largest_batch_of_a_real_program(copy):
    """Against the next: seen by plain runs."""
    done, document = command("fit", [], "finetune.py", copy, ["--batch", "{batch}", "--length", "512"])
    largest = document["cards"][0]["largest_batch"]
    assert done.returncode == 0 and largest > 1, done.stderr[-6000:]
    for batch, verdict in ((largest, "fits"), (largest + 1, "out_of_memory")):
        program = [python_of(ENVIRONMENT), "finetune.py", "--batch", str(batch), "--length", "512"]
        run = run_tonnage(["--gpu", "rtx3060"], program, copy)
        assert run.verdict == verdict, run.explain()
