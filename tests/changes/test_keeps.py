# SPDX-License-Identifier: Apache-2.0
"""What the survey sees of what a program keeps: which changes have something to act on, and how much they can save at most."""

import pytest
from conftest import MIB

GIB = 1 << 30
# The programs have their peak in what comes last, `torch.empty(1 << 30)`: so when they came to a place bounds next to nothing (test_reached.py).

KEPT = """
    import torch
    from torch import nn

    model = nn.Linear(256, 4096).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    loader = torch.utils.data.DataLoader(torch.zeros(4096, 256), batch_size=1024)
    kept = []
    for x in loader:
        output = model(x.cuda())
        loss = output.square().mean()
        loss.backward()
        optimizer.step()
        kept.append(%s)
    torch.empty(1 << 30, device="cuda")
    print(len(kept), [value.requires_grad for value in kept] if torch.is_tensor(kept[0]) else kept[0])
"""


def possible(outcome):
    """{change: what it can save at most}; None where nothing but the time bounds it."""
    most = {row["id"]: row["at_most"] for row in outcome.document["survey"]["possible"]}
    return {name: None if bytes is not None and bytes > GIB / 2 else bytes for name, bytes in most.items()}


@pytest.mark.parametrize(
    "value, detach, outputs",
    [
        ("loss.item()", False, False),
        ("loss.detach()", False, False),
        ("loss", True, False),
        ("output.detach()", False, 4 * 16 * MIB),
        ("output[:, 0].detach()", False, 4 * 16 * MIB),  # a view keeps all of it
        ("output.detach().cpu()", False, False),
        ("output", True, None),  # the graph would go, too: how much that is nobody has measured
        ("[output.detach(), 1]", False, 4 * 16 * MIB),
    ],
)
def test_what_there_is_to_act_on(virtual, value, detach, outputs):
    survey = virtual(KEPT % value, "survey")
    assert survey.stdout == virtual(KEPT % value).stdout  # the very same values go on
    found = possible(survey)
    assert ("detach" in found) == detach and found.get("outputs_to_host", False) == outputs, found


def test_a_change_that_is_left_out_would_have_found_nothing(virtual):
    """What the survey has seen is what the changes see: none of the two makes a difference here."""
    for change in ("detach", "outputs_to_host"):
        entry = next(entry for entry in virtual(KEPT % "loss.detach()", change).document["changes"] if entry["id"] == change)
        assert entry["found_nothing"] and not entry["applied"], entry


STEP = """
    import dataclasses
    import torch
    from torch import nn

    @dataclasses.dataclass
    class Output:
        logits: torch.Tensor

    model = nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for step in range(3):
        output = %s
        loss = %s.square().mean()
        loss.backward()
        optimizer.step()
    torch.empty(1 << 30, device="cuda")
"""


@pytest.mark.parametrize(
    "output, logits, most",
    [
        ('model(torch.randn(4096, 1024, device="cuda"))', "output", 16 * MIB),
        ('{"logits": model(torch.randn(4096, 1024, device="cuda"))}', 'output["logits"]', 16 * MIB),
        ('Output(model(torch.randn(4096, 1024, device="cuda")))', "output.logits", None),  # it may hold anything
    ],
)
def test_outputs_that_could_be_released(virtual, output, logits, most):
    found = possible(virtual(STEP % (output, logits), "survey"))
    assert "release_outputs" in found and found["release_outputs"] == most


LOGITS = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    model = nn.Linear(256, 4096).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    target = torch.zeros(1024, dtype=torch.long).cuda()
    losses = []
    for step in range(3):
        %s
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.empty(1 << 30, device="cuda")
"""
ONE = 3 * 16 * MIB  # of [1024, 4096] logits in float32


@pytest.mark.parametrize(
    "loss, most",
    [
        ("loss = F.cross_entropy(model(torch.ones(1024, 256).cuda()), target)", ONE),
        ("loss = F.cross_entropy(model(torch.ones(1024, 256).cuda()).bfloat16(), target)", ONE),
        ("loss = 0\n        for _ in range(2): loss += F.cross_entropy(model(torch.ones(1024, 256).cuda()), target)", 2 * ONE),
        ("logits = model(torch.ones(1024, 256).cuda())\n        loss = F.cross_entropy(logits[:, :2].cpu(), target.cpu())", 0),
    ],
)  # fmt: skip
def test_what_a_loss_in_pieces_can_save(virtual, loss, most):
    assert possible(virtual(LOGITS % loss, "survey"))["chunked_loss"] == most


TRAINED = """
    import torch
    from torch import nn

    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda()
    trained = []
    for p in filter(lambda p: p.requires_grad, model.parameters()):
        trained.append(p)
    optimizer = torch.optim.SGD(trained, lr=.1)
    loader = torch.utils.data.DataLoader(torch.zeros(64, 256), batch_size=16)
    for x in loader:
        optimizer.zero_grad()
        model(x.cuda()).square().mean().backward()
        optimizer.step()
    def test():
        kept = []
        for name, p in model.named_parameters():
            kept.append(p)
        return kept
    print(all(p is q for p, q in zip(trained, model.parameters())), all(p is q for p, q in zip(test(), model.parameters())))
"""


@pytest.mark.parametrize("change", ["survey", "detach", "outputs_to_host"])
def test_a_list_of_parameters_has_the_very_parameters(virtual, change):
    """What an optimizer is made with is no output that was kept: detached, or a copy on the CPU, it would train nothing."""
    outcome = virtual(TRAINED, change)
    assert outcome.stdout == "True True\n", outcome.stdout + outcome.stderr
    if change == "survey":
        assert not {"detach", "outputs_to_host"} & set(possible(outcome))
    else:
        assert not outcome.document["changes"][0]["applied"]
