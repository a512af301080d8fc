# SPDX-License-Identifier: Apache-2.0
"""A patch is tried as it stands: the text that runs is the text that patch(1) makes, and what does not apply is said."""

import random

import pytest
from test_frame import load

PROGRAM = """
    import torch

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=8)
    for epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    print("%.12f" % model.weight.sum().item())
"""


@pytest.mark.parametrize("seed", range(60))
def test_the_edits_of_a_patch_make_the_patched_text(seed, tmp_path):
    """Of any two texts, with lines added, taken out and replaced anywhere, at both ends, with and without a last newline."""
    source, patched, results = load("source"), load("patched"), load("results")
    dice = random.Random(seed)
    lines = ["x%d = %d" % (number, dice.randrange(9)) for number in range(dice.randrange(1, 40))]
    after = list(lines)
    for _ in range(dice.randrange(1, 8)):
        at = dice.randrange(len(after) + 1)
        after[at:at + dice.randrange(3)] = ["y = %d" % dice.randrange(99) for _ in range(dice.randrange(3))]
    ends = [dice.choice(["", "\n"]) for _ in range(2)]
    path = tmp_path / "program.py"
    text = source.Source(str(path), "\n".join(lines) + ends[0])
    wanted = "\n".join(after) + (ends[1] if after else "")
    patch = source.difference(text, wanted, str(tmp_path))
    if patch is None:
        assert wanted == text.text
        return
    change = results.Change("patch", None, None)
    patched._edit(change, text, patched._hunks_of(patch)["program.py"])
    assert source.render(text, [change.edits(text)])[0].rstrip("\n") == wanted.rstrip("\n"), patch


def test_it_runs_as_the_patched_program(on_cpu):
    changed = on_cpu(PROGRAM, "accumulate=2")
    patch = changed.change("accumulate")["patch"]
    assert not changed.document["patch_was_run"]  # it has acted while the program ran
    tried = on_cpu(PROGRAM, TONNAGE_PATCH=patch)
    assert tried.change("patch")["applied"] and tried.stdout == on_cpu(PROGRAM, patch=patch).stdout
    assert tried.document["pace"]["backward"] == changed.document["pace"]["backward"] == 2


def test_a_change_of_the_text_alone_was_tried_by_its_trial(on_cpu):
    changed = on_cpu(PROGRAM, "foreach")
    assert changed.change("foreach")["patch"] and changed.document["patch_was_run"]


@pytest.mark.parametrize("was, is_now, why", [
    ("batch_size=8", "batch_size=9", "not what the patch says"),
    ("print(", "print((", "was never closed"),
])  # fmt: skip
def test_what_cannot_be_applied_is_said_and_the_program_runs_as_it_is(on_cpu, was, is_now, why):
    patch = on_cpu(PROGRAM, "accumulate=2").change("accumulate")["patch"]
    if "closed" in why:
        line = next(row for row in PROGRAM.splitlines() if was in row).strip()
        patch = "--- a/program.py\n+++ b/program.py\n@@ -13,1 +13,1 @@\n-%s\n+%s\n" % (line, line.replace(was, is_now))
        program = PROGRAM
    else:
        program = PROGRAM.replace(was, is_now)
    tried = on_cpu(program, TONNAGE_PATCH=patch)
    entry = next(entry for entry in tried.document["changes"] if entry["id"] == "patch")
    assert not entry["applied"] and why in entry["why_not"], entry
    assert tried.stdout == on_cpu(program).stdout


def test_a_file_that_is_never_run_says_nothing(on_cpu):
    tried = on_cpu(PROGRAM, TONNAGE_PATCH="--- a/other.py\n+++ b/other.py\n@@ -1,1 +1,1 @@\n-x\n+y\n")
    assert tried.documents == [] or tried.document["changes"][0]["found_nothing"]
