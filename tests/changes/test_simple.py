# SPDX-License-Identifier: Apache-2.0
"""Changes of a few lines of the program's text: what they save is what theory says, and the patch saves the same."""

from conftest import MIB

LATE = """
    import torch
    from torch import nn

    def train():
        model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(8))).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(4):
            x = torch.randn(8192, 2048, device="cuda")
            y = model(x)
            loss = nn.functional.mse_loss(y, x)
            %s
            loss.backward()
            optimizer.step()
        print("done")

    train()
"""


def test_zero_grad_moves_behind_the_update(saves):
    before, after, entry = saves(LATE % "optimizer.zero_grad()", "zero_grad")
    # eight gradients of 16 MiB lived through the forward pass, whose peak (the loss) decided
    assert before.allocated - after.allocated >= 7 * 16 * MIB
    assert entry["results"] == "same"
    assert entry["places"][0]["line"] == 11
    assert "-        optimizer.zero_grad()" in entry["patch"]


def test_zero_grad_stays_under_an_option_and_follows_the_update_as_well(saves):
    before, after, entry = saves(LATE % "if True:\n                optimizer.zero_grad()", "zero_grad")
    assert before.allocated - after.allocated >= 7 * 16 * MIB


def test_zero_grad_that_throws_micro_steps_away_is_left_alone(virtual):
    program = (LATE % "optimizer.zero_grad()").replace(
        "optimizer.step()", "if step % 2:\n                optimizer.step()")  # fmt: skip
    entry = virtual(program, "zero_grad").document["changes"][0]
    assert not entry["applied"] and entry["why_not"] and entry["patch"] is None


EVALUATION = """
    import torch
    from torch import nn

    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(2):
        model.train()
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        with torch.set_grad_enabled(True):
            for batch in range(2):
                y = model(torch.randn(8192, 1024, device="cuda"))
    print("done")
"""


def test_no_grad_around_an_evaluation(saves):
    before, after, entry = saves(EVALUATION, "no_grad")
    # 32 MiB a layer; with no graph three outputs live at a time: the last batch's, one's input and output
    assert before.allocated - after.allocated >= 5 * 32 * MIB
    assert entry["results"] == "same" and entry["places"][0]["line"] == 13


def test_no_grad_where_the_text_does_not_show_it(virtual):
    program = EVALUATION.replace("model.eval()", "getattr(model, 'eval')()")
    before, after = virtual(program), virtual(program, "no_grad")
    assert after.change("no_grad")["effective"] == 4
    assert before.allocated - after.allocated >= 5 * 32 * MIB
