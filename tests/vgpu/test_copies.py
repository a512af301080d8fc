# SPDX-License-Identifier: Apache-2.0
"""What is called a second copy of the model, and what is none: doc/design/0021-advice.md."""

import textwrap

import pytest
from conftest import MAIN

FORKED = True  # ../fork_servers.py

LAYERS, WIDTH = 12, 1024
COPY = LAYERS * (WIDTH * WIDTH + WIDTH) * 4

TRAIN = f"""
import copy, torch
from torch import nn

def made(dtype=torch.float32):
    return nn.Sequential(*(nn.Linear({WIDTH}, {WIDTH}, dtype=dtype) for _ in range({LAYERS}))).cuda()

def train(model, parameters=None, dtype=torch.float32, also=()):
    optimizer = torch.optim.SGD(list(parameters or model.parameters()), 1e-3)
    for step in range(3):
        x = torch.randn(64, {WIDTH}, device="cuda", dtype=dtype)
        loss = model(x).float().mean()
        for other in also:
            loss = loss + other(x).float().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
PROGRAMS = {  # name -> (program, bytes that are called a copy)
    "averaged_model": ("model = made(); average = torch.optim.swa_utils.AveragedModel(model); train(model)", COPY),
    "list_of_wider_tensors": ("""
        model = made(torch.bfloat16)
        average = [p.detach().float() for p in model.parameters()]
        train(model, dtype=torch.bfloat16)""", COPY),
    "list_beside_an_encoder": ("""
        model, encoder = made(), nn.Linear(2048, 2048).cuda().requires_grad_(False)
        average = [p.clone().detach() for p in model.parameters()]
        train(model)""", COPY),
    "a_few_tensors_as_large_as_layers": ("""
        model = made()
        kept = [torch.zeros(1024, 1024, device="cuda") for _ in range(9)]
        train(model)""", 0),
    "given_to_the_optimizer_all_the_same": ("""
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.online = made()
                self.target = copy.deepcopy(self.online).requires_grad_(False)
            def forward(self, x):
                with torch.no_grad():
                    self.target(x)
                return self.online(x)
        train(Both())""", COPY),
    "layers_that_are_frozen": ("""
        model = made()
        for layer in model[:6]:
            layer.requires_grad_(False)
        train(model)""", 0),
    "two_models_that_are_trained": ("""
        one, other = made(), made()
        train(one, [*one.parameters(), *other.parameters()], also=[other])""", 0),
    "another_model": ("""
        model = made()
        teacher = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(20))).cuda().requires_grad_(False)
        train(model)""", 0),
    "updates_of_all_at_once": ("train(made())", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_a_copy(tonnage, tmp_path, name):
    text, expected = PROGRAMS[name]
    (tmp_path / "program.py").write_text(TRAIN + textwrap.dedent(text).strip() + "\n")
    run = tonnage(MAIN, [str(tmp_path / "program.py")], "--gpu=rtx3060")
    holders = [holder for holder in run.report["at_peak"]["holders"] if holder["what"] == "copy of the model"]
    assert sum(holder["bytes"] for holder in holders) == expected, run.explain()
