# SPDX-License-Identifier: Apache-2.0
"""Of how many backward passes gradients are made, and what keeps that, on the CPU."""

import pytest

FORKED = True  # ../fork_servers.py

GAN = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    made, judged = nn.Linear(4, 8), nn.Linear(8, 1)
    of_made, of_judged = torch.optim.SGD(made.parameters(), lr=.1), torch.optim.SGD(judged.parameters(), lr=.1)

    def train(x):
        fake = made(x)
        of_judged.zero_grad()
        judged(torch.ones(6, 8)).mean().backward()
        judged(fake.detach()).mean().neg().backward()
        of_judged.step()

        of_made.zero_grad()
        judged(fake).square().mean().backward()
        of_made.step()

    for step in range(4):
        train(torch.randn(6, 4))
    print(made.weight.sum().item(), judged.weight.sum().item())
"""


def passes(outcome):
    return outcome.document["pace"]["passes"]


def test_what_an_unchanged_gan_shows(on_cpu):
    """The discriminator's gradient is made of two passes; three lie between two updates of either."""
    assert sorted(passes(on_cpu(GAN, "survey"))) == [[[1, 3]] * 4, [[2, 2]] + [[2, 3]] * 3]


def test_both_zeroings_are_kept_where_another_pass_adds_to_the_gradients(on_cpu):
    unchanged, changed = on_cpu(GAN, "survey"), on_cpu(GAN, "zero_grad")
    assert changed.stdout == unchanged.stdout and sorted(passes(changed)) == sorted(passes(unchanged))
    patch = changed.change("zero_grad")["patch"]
    assert patch.count("+    ") == 2 and "-    " not in patch, patch
    assert on_cpu(GAN, patch=patch).stdout == unchanged.stdout


def test_an_update_in_each_pass_is_seen(on_cpu):
    changed = on_cpu(GAN, "step_in_backward")
    assert changed.stdout != on_cpu(GAN).stdout
    assert [1, 1] in [row for rows in passes(changed) for row in rows[1:]]


LOOP = """
    import torch
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for step in range(3):
        %s
"""


@pytest.mark.parametrize("body, found", [
    ("optimizer.zero_grad(); model(torch.ones(1, 4)).sum().backward(); optimizer.step()", [[1, 1]] * 3),
    ("model(torch.ones(1, 4)).sum().backward(); optimizer.step(); optimizer.zero_grad(set_to_none=False)", [[1, 1]] * 3),
    ("[model(torch.ones(1, 4)).sum().backward() for _ in range(4)]; optimizer.step(); model.zero_grad()", [[4, 4]] * 3),
    ("model(torch.ones(1, 4)).sum().backward(); optimizer.step()  # never", [[1, 1], [2, 1], [3, 1]]),
    ("model(torch.ones(1, 4)).sum().backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), .1); optimizer.step(); optimizer.zero_grad()",
     [[1, 1]] * 3),
])  # fmt: skip
def test_how_a_loop_zeroes(on_cpu, body, found):
    assert passes(on_cpu(LOOP % body, "survey")) == [found]


def test_updates_of_epochs_that_end_early_are_not_looked_at(on_cpu):
    """Lightning, and programs like it, update at the end of an epoch, which comes after one batch once memory has settled."""
    seen = on_cpu("""
    import sys, torch
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for update in range(12):
        if update == 4:
            sys.modules["_tonnage_guest.state"].state.fast_forward = "settled"
        for _ in range(2 if update < 4 else 1):
            model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    """, "survey").document["pace"]
    assert (seen["updates"], seen["backward"], seen["passes"]) == (4, 2, [[[2, 2]] * 4])


REENTRANT = """
    import torch
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    first, blocks = torch.nn.Linear(4, 4), torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(3))
    model = torch.nn.ModuleList([first, blocks])
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=8)
    for epoch in range(2):
        for batch in loader:
            x = first(batch)
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=%s)
            optimizer.zero_grad()
            x.square().mean().backward()
            optimizer.step()
    print("%%.12f" %% sum(parameter.sum().item() for parameter in model.parameters()))
"""


def test_a_pass_within_a_pass_is_none_of_its_own(on_cpu):
    """Reentrant checkpointing goes backward through each segment within the pass: that is no second pass, and nothing there is cut or divided."""
    inner, outer = on_cpu(REENTRANT % True, "survey"), on_cpu(REENTRANT % False, "survey")
    assert inner.document["pace"]["backward"] == outer.document["pace"]["backward"] == 1
    assert passes(inner) == passes(outer)
    changed = on_cpu(REENTRANT % True, "accumulate=2")
    assert changed.stdout == on_cpu(REENTRANT % True).stdout and changed.document["pace"]["backward"] == 2
    assert on_cpu(REENTRANT % True, patch=changed.change("accumulate")["patch"]).stdout == changed.stdout
