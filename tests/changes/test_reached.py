# SPDX-License-Identifier: Apache-2.0
"""A change of the text saves no more than the peak has grown since the program first came to what it changes."""

import pytest
from conftest import MIB

BEGIN = """
    import copy
    import torch
    from torch import nn

    def evaluate(model):
        model.eval()
        y = model(torch.ones(64, 1024, device="cuda"))
        model.train()
        return y.sum().item()

    model = nn.Linear(1024, 1024).cuda()  # 4 MiB, and a bias
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    torch.empty(128 << 20, dtype=torch.uint8, device="cuda")  # the peak so far
"""
LOAD = """
    torch.save(model.state_dict(), "model.pt")
    if %s:
        state = torch.load("model.pt", map_location="cuda")
        model.load_state_dict(state)
"""
MORE = """
    more = torch.empty(%d << 20, dtype=torch.uint8, device="cuda")
"""


def most(outcome, change):
    return next(row["at_most"] for row in outcome.document["survey"]["possible"] if row["id"] == change)


@pytest.mark.parametrize(
    "program, change, bound",
    [
        (LOAD % "False", "map_location", 0),  # nothing is loaded
        (LOAD % "False" + MORE % 1024, "map_location", 0),
        (LOAD % "True", "map_location", 0),  # what was the peak before it is the peak
        (LOAD % "True" + MORE % 1024, "map_location", 1024 - 128 + 4),
        (MORE % 1024 + LOAD % "True", "map_location", 4),
        ("\n    evaluate(model)\n", "no_grad", 0),
        ("\n    evaluate(model)\n" + MORE % 1024, "no_grad", 1024 - 128),
        (MORE % 1024 + "\n    kept = evaluate\n", "no_grad", 0),  # it is never called
        ("\n    best = copy.deepcopy(model.state_dict())\n" + MORE % 512, "copies_to_host", 512 - 128 + 4),
    ],
)
def test_the_peak_falls_by_no_more_than_it_has_grown(virtual, program, change, bound):
    found = most(virtual(BEGIN + program, "survey"), change)
    assert abs(found - bound * MIB) <= MIB / 2, found / MIB


@pytest.mark.parametrize("lines", [
    "if True: best = copy.deepcopy(model.state_dict())",
    "x = 1; best = copy.deepcopy(model.state_dict())",
])  # fmt: skip
def test_a_place_that_shares_its_line_bounds_nothing(virtual, lines):
    outcome = virtual(BEGIN + "\n    %s\n" % lines + MORE % 512, "survey")
    assert most(outcome, "copies_to_host") >= 512 * MIB


@pytest.mark.parametrize("lines", [
    "if not model:\n        pass\n    elif copy.deepcopy(model.state_dict()):\n        pass",
    "try:\n        pass\n    finally:\n        best = copy.deepcopy(model.state_dict())",
    "@(lambda made: made)\n    def kept(state=copy.deepcopy(model.state_dict())):\n        pass",
    "best = [\n        copy.deepcopy(model.state_dict())]",
])  # fmt: skip
def test_places_that_are_no_simple_statements(virtual, lines):
    program = BEGIN + "\n    %s\n" % lines + MORE % 512
    outcome = virtual(program, "survey")
    assert outcome.stdout == virtual(program).stdout
    assert 0 < most(outcome, "copies_to_host") < 480 * MIB
