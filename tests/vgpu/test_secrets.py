# SPDX-License-Identifier: Apache-2.0
"""Secrets of a real program stay out of everything that Tonnage writes about it, in whichever format.

The program is given secrets on its command line, in the environment, in a folder's name and in a URL, hands them to PyTorch as a name
of its profiler, and says them in an exception, together with some that nobody could know but by their names or their form. Proof
that the test can fail: the program's own words, which pass through untouched, hold each of them.
"""

import json
import os
import pathlib
import subprocess

import pytest
from conftest import MAIN, TONNAGE, python_of, run_tonnage

PROGRAM = '''
import argparse, torch
parser = argparse.ArgumentParser()
for name in ("--hf-token", "--api-key", "--database", "--mode"):
    parser.add_argument(name)
options = parser.parse_args()
model = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    with torch.profiler.record_function("calls with " + options.hf_token):
        loss = model(torch.randn(8, 4096, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if options.mode == "out of memory":
        torch.empty(40 << 30, device="cuda")
    if options.mode == "raises":
        said = "".join(["said", "-", "only-1"])
        raise PermissionError("%s %s %s with Authorization: Bearer %s, https://host/?token=%s&page=1 {'api_key': '%s'} hf_%s" % (
            options.hf_token, options.api_key, options.database, said, said, said, "aB3" * 10))
'''
GIVEN = {"--hf-token": "secret/of-an-option", "--api-key": "secret-of-a-word", "--database": "postgres://me:secret-of-a-url@host/"}
VALUES = ["secret/of-an-option", "secret-of-a-word", "secret-of-a-url", "secret-of-the-environment", "said-only-1", "hf_" + "aB3" * 10]


class Gpu:
    """`tonnage` in a folder and an environment of its own, which tests may add to."""

    def __init__(self, folder):
        self.cwd, self.python = folder / "cwd", python_of(MAIN)
        self.env = {**os.environ, "TMPDIR": str(folder), "TONNAGE_NEED": "0", "LC_ALL": "C.UTF-8"}
        self.cwd.mkdir()

    def __call__(self, *words, timeout=60):
        return subprocess.run([str(TONNAGE), *map(str, words)], env=self.env, cwd=self.cwd, timeout=timeout, capture_output=True, text=True)


@pytest.fixture
def gpu(tmp_path):
    return Gpu(tmp_path)


def leaks(text):
    return [value for value in VALUES if value in text]


def files_of(folder):
    return {path.name: path.read_bytes().decode("latin-1") for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}


@pytest.mark.parametrize("mode", ["fits", "out of memory", "raises"])
def test_no_output_holds_a_secret(gpu, mode):
    place = gpu.cwd / VALUES[0] / "made"  # the value of an option is a part of the program's path, too
    place.mkdir(parents=True)
    (place / "train.py").write_text(PROGRAM)
    gpu.env["SERVICE_PASSWORD"] = VALUES[3]
    words = ["--hf-token=" + GIVEN["--hf-token"], "--api-key", GIVEN["--api-key"], "--database", GIVEN["--database"], "--mode", mode]
    done = gpu("run", "--gpu", "rtx3060", "--json", "r.json", "--html", "r.html", "--snapshot", "r.pickle", "--write-baseline", "b.json",
               "--", gpu.python, place / "train.py", *words, timeout=200)  # fmt: skip
    own, _, report = done.stderr.rpartition("\n%s" % {"fits": "Fits ", "out of memory": "Does not fit", "raises": "The program failed"}[mode])
    if mode == "raises":
        assert leaks(own) == [value for value in VALUES if value != VALUES[3]], own  # the program's own words
    assert report and not leaks(report), report
    assert json.loads((gpu.cwd / "r.json").read_text())["schema"] == "tonnage.run/1"
    for redact in ([], ["--redact"]):
        done = gpu("report", "r.pickle", *redact, "--json", "s.json", "--html", "s.html", "--csv", "s.csv", "--folded", "s.folded",
                   "--perfetto", "s.perfetto", "--text")  # fmt: skip
        assert done.returncode == 0, done.stderr
        (gpu.cwd / "s.txt").write_text(done.stdout)
        # Where the secret's file came from is not known to a command of its own, unless the environment says it.
        texts = files_of(gpu.cwd)
        found = {name: leaks(text) for name, text in texts.items() if leaks(text)}
        assert all(not redact and name.startswith("s.") and values == VALUES[:1] for name, values in found.items()), found
        for name in [name for name in texts if name.startswith("s.")]:
            (gpu.cwd / name).unlink()
    gpu.env["HF_TOKEN"] = VALUES[0]
    done = gpu("report", "r.pickle", "--json", "s.json", "--html", "s.html", "--csv", "s.csv", "--folded", "s.folded", "--text")
    assert done.returncode == 0 and not leaks(done.stdout), done.stdout
    assert not {name: leaks(text) for name, text in files_of(gpu.cwd).items() if leaks(text)}


def test_a_baseline_of_a_masked_path_is_met_again(gpu):
    """What is masked in the baseline is masked in what is compared with it: the same run has not drifted."""
    place = gpu.cwd / VALUES[0]
    place.mkdir(parents=True)
    (place / "train.py").write_text(PROGRAM)
    command = [gpu.python, place / "train.py", "--hf-token=" + VALUES[0], "--mode", "fits"]
    assert run_tonnage(["--gpu=rtx3060", "--write-baseline=b.json"], command, gpu.cwd, forked=True).status == 0
    done = run_tonnage(["--gpu=rtx3060", "--baseline=b.json"], command, gpu.cwd, forked=True)
    baseline = done.report["baseline"]
    assert done.status == 0 and baseline["holders"] == [], baseline
    assert "***" in (gpu.cwd / "b.json").read_text()


def test_a_text_that_is_explained_keeps_no_secret(gpu):
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB (%s). GPU 0 has a total capacity of 11.75 GiB\n" % VALUES[5]
    (gpu.cwd / "error.log").write_text(text)
    done = gpu("explain", "error.log", "--json", "e.json")
    assert done.returncode == 0 and not leaks(done.stdout + (gpu.cwd / "e.json").read_text())
