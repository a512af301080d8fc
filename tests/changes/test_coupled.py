# SPDX-License-Identifier: Apache-2.0
"""Losses that compare the samples of a batch with each other: what their graphs show, in the program as it is and under
accumulation. Which of it makes another training is src/search/fix_same.c's to say (tests/cli/test_fix.py)."""

import pytest

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 6))
    scale = nn.Parameter(torch.ones(6, 6))
    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
    for x, y in DataLoader(TensorDataset(torch.randn(32, 12), torch.randint(5, (32,))), batch_size=16):
        z = model(x)
        loss = %s
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("done")
"""
CROSS = "nn.functional.cross_entropy(%s, torch.arange(len(z)))"
COUPLED = {
    "contrastive": (CROSS % "z @ z.T", [16, 6, 16], [8, 6, 8]),
    "einsum": (CROSS % "torch.einsum('id,jd->ij', z, z)", [16, 6, 16], [8, 6, 8]),
    "detached": (CROSS % "z @ z.detach().T", [16, 6, 16], [8, 6, 8]),
    "scaled": (CROSS % "z @ scale @ z.T", [16, 6, 16], [8, 6, 8]),
    "distances": ("torch.cdist(z, z).mean()", [16, 1, 16], [8, 1, 8]),
    "differences": ("(z[:, None] - z[None]).pow(2).mean()", [16, 1, 16], [8, 1, 8]),
    "covariance": ("(z.T @ z / len(z)).pow(2).mean()", [6, 16, 6], [6, 8, 6]),
}
APART = {
    "labels": "nn.functional.cross_entropy(z, y)",
    "parameters": "(z @ scale).pow(2).mean()",
    "normed": "(z - z.mean(1, keepdim=True)).pow(2).mean()",
    "attention": "(z.view(len(z), 2, 3) @ z.view(len(z), 3, 2)).pow(2).mean()",
}


def products_of(outcome):
    return outcome.document["pace"]["products"]


@pytest.mark.parametrize("name", list(COUPLED))
def test_what_compares_samples_is_seen(on_cpu, name):
    loss, before, after = COUPLED[name]
    assert before in products_of(on_cpu(PROGRAM % loss, "survey"))
    changed = on_cpu(PROGRAM % loss, "accumulate=2")
    changed.change("accumulate")
    assert after in products_of(changed)


@pytest.mark.parametrize("name", list(APART))
def test_what_takes_each_sample_for_itself_shows_none(on_cpu, name):
    assert products_of(on_cpu(PROGRAM % APART[name], "survey")) == []


CHECKPOINTED = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        calls = 0

        def __init__(self):
            super().__init__()
            self.queries, self.keys = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            Block.calls += 1
            return torch.bmm(torch.bmm(self.queries(x), self.keys(x).transpose(1, 2)).softmax(2), x)

    model = nn.Sequential(Block(), Block())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(4, 5, 6)
        for block in model:
            x = checkpoint(block, x, use_reentrant=False)
        x.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(Block.calls)
"""


def test_looking_computes_no_checkpointed_block_again(on_cpu):
    """What a node has saved is computed again when it is read, and all of the block is held: the trial's peak would be ours."""
    assert on_cpu(CHECKPOINTED, "survey").stdout.split() == ["8"]


STOPPED = """
    import os, torch
    from torch import nn

    model = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        model(torch.randn(4, 6)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    os._exit(0)
"""


def test_updates_are_known_of_a_program_that_is_stopped_later(on_cpu):
    """A trial ends where its peak is known; nothing runs at its exit then."""
    pace = on_cpu(STOPPED, "zero_grad").document["pace"]
    assert pace["updates"] == 4  # the fifth is no power of two
