# SPDX-License-Identifier: Apache-2.0
"""What depends on the machine's own GPU, against a FAKE driver: --probe, --gpu auto, --gpu real."""

import json
import pathlib
import shutil
import subprocess

import pytest
from command import FAKES, fake_words

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def machine(tonnage):
    """The command on a machine with the fake driver."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the fake driver")
    libraries = tonnage.cwd.parent / "driver"
    libraries.mkdir()
    source = HERE / "fake_driver.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", libraries / "libcuda.so.1", source], check=True)
    shutil.copy(libraries / "libcuda.so.1", libraries / "libnvidia-ml.so.1")
    tonnage.env["LD_LIBRARY_PATH"] = str(libraries)
    return tonnage


def test_probe(machine):
    done = machine("gpus", "--probe")
    assert done.returncode == 0 and done.stderr == ""
    row = done.stdout.rstrip("\n").split(",")
    header = (HERE.parent.parent / "src/gpu/gpus.csv").read_text().splitlines()[0].split(",")
    assert len(row) == len(header)
    card = dict(zip(header, row))
    assert card["name"] == "NVIDIA H200" and card["aliases"] == "h200" and card["compute_capability"] == "9.0"
    assert card["total_mib"] == "100000" and card["context_mib"] == "512" and card["mem_gbps"] == "4917"
    assert "--probe" in card["evidence"] and "driver 999.1" in card["evidence"] and card["certainty"] == "exact"


def test_auto_is_a_virtual_copy(machine, schema):
    done = machine("run", "--json", "-", "--", *fake_words(document={}))
    report = json.loads(done.stdout.partition("output\n")[2])
    schema("run", report)
    assert done.returncode == 0 and report["gpu"]["name"] == "NVIDIA H200"
    assert report["gpu"]["total_bytes"] == 100000 << 20 and report["gpu"]["context_bytes"] == 767 << 20
    assert report["sources"]["gpu.total_bytes"] == "the driver of this machine"


def test_trials_are_on_a_copy_of_this_machine_s_gpu(machine):
    """A real driver works in no process that is forked from one that asked it (fake_driver.c), and trials are."""
    program = [*FAKES, str(HERE / "fake_program.py"), '{"base": 9, "sample": 1024}']
    done = machine("fit", "--json", "-", "--", *program, "{batch}")
    (card,) = json.loads(done.stdout.partition("output\n")[2] or done.stdout)["cards"]
    assert card["name"] == "NVIDIA H200" and card["total_bytes"] == 100000 << 20
    assert card["largest_batch"] == (100000 - 767 - 9) // 1024


def test_real_samples_what_the_run_holds(machine, schema):
    # The fake driver says that the process in ./holder holds 3 GiB; the program writes its own pid there.
    words = "echo $$ > holder.new; mv holder.new holder; sleep 1"
    report = machine.cwd / "report.json"
    done = machine("run", "--gpu", "real", "--writes", "allow", "--json", report, "--", "sh", "-c", words)
    document = json.loads(report.read_text())
    schema("run", document)
    assert done.returncode == 0 and document["peak"]["device_bytes"] == 3 << 30
    assert document["at_peak"]["by_category"] is None and "NVML" in document["sources"]["peak.device_bytes"]


def test_real_cannot_be_pretended(machine):
    for option in (["--memory", "1GiB"], ["--other", "1GiB"], ["--gpus", "2"]):
        done = machine("run", "--gpu", "real", *option, "--", "true")
        assert done.returncode == 2 and "need a virtual GPU" in done.stderr
