# SPDX-License-Identifier: Apache-2.0
"""Trials whose processes are forked from one that has imported PyTorch find what fresh processes find, to the byte."""

import json
import subprocess

import pytest
from conftest import TONNAGE, WHEELS, python_of

PROGRAM = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = DataLoader(TensorDataset(torch.zeros(96, 1024)), batch_size=32)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 1024))
                              for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(30):
    for batch, in data:
        loss = model(batch.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
torch.save(model.state_dict(), "model.pt")
"""


@pytest.fixture
def fix(tmp_path):
    def run(wheel, *options):
        (tmp_path / "train.py").write_text(PROGRAM)
        command = [TONNAGE, "fix", "--quiet", "--gpu", "rtx3060", "--memory", "1200MiB", "--json", "fix.json", *options, "--",
                   python_of(wheel), "train.py"]  # fmt: skip
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert not (tmp_path / "model.pt").exists()
        return json.loads((tmp_path / "fix.json").read_text()), done.stderr

    return run


@pytest.mark.parametrize("wheel", WHEELS)
def test_a_fork_is_the_program(fix, wheel):
    """A forked trial of the unchanged program has shown the same as a fresh one, else the others would not be forked."""
    document, words = fix(wheel, "--seconds=1")
    assert document["not_forked_because"] is None and document["forked_trials"] == document["trials"] - 1 >= 3, words
    assert any(change["fits"] for change in document["changes"]), document


@pytest.mark.long
def test_forked_trials_find_what_fresh_ones_find(fix):
    forked, fresh = fix("torch-2.11.0", "--seconds", "0")[0], fix("torch-2.11.0", "--seconds", "0", "--fresh")[0]
    found, again = (
        {row["id"]: (row["outcome"], row["saved_bytes"], row["peak_reserved_bytes"], row["patch"]) for row in document["changes"]}
        for document in (forked, fresh)
    )
    both = found.keys() & again.keys()  # what is tried last depends on which trial ended first
    assert len(both) >= 5 and {name: found[name] for name in both} == {name: again[name] for name in both}
