# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: they run, their work areas are what the model says, and the report says that it is a model."""

import pytest
from conftest import MIB, WHEELS

FORKED = True  # ../fork_servers.py


@pytest.mark.parametrize("environment", WHEELS)
def test_transforms(tonnage, environment):
    run = tonnage(environment, "programs/fft.py", "--gpu=rtx3060")
    assert run.verdict == "fits" and run.status == 0, run.explain()
    rows = {line.rsplit(" ", 2)[0]: [int(word) for word in line.rsplit(" ", 2)[1:]]
            for line in run.stdout.splitlines() if line.startswith(("fft", "own"))}  # fmt: skip
    data = 64 * (1 << 15) * 8
    assert rows["fft"] == [data, data], run.explain()
    assert rows["fft2"] == [data, data], run.explain()
    prime = 64 * 10007 * 8
    taken, kept = rows["fft of a prime"]
    assert 0 <= taken - 8 * prime < MIB and 0 <= kept - prime < MIB, run.explain()  # what is too small to be split off
    assert rows["own area"] == [4 * (1 << 20) * 8, 4 * (1 << 20) * 8], run.explain()
    assert "given back 0" in run.stdout and "stft (64, 513, 257)" in run.stdout, run.explain()
    source = run.report["sources"]["at_peak.by_category.workspaces"]
    assert source.startswith("model") and "cuFFT" in source, run.explain()
    assert not run.report["coverage"]["refused_calls"], run.explain()
