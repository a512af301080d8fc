# SPDX-License-Identifier: Apache-2.0
"""Changes to how a checkpoint is loaded: what they save is the checkpoint, and the patch saves the same."""

from conftest import MIB

import pytest

RESUMED = """
    import torch
    from torch import nn

    def build():
        model = nn.Linear(4096, 4096, bias=False).cuda()
        return model, torch.optim.Adam(model.parameters(), fused=True)

    def step(model, optimizer):
        model(torch.randn(8, 4096, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    def begin():
        model, optimizer = build()
        step(model, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, "last.pt")

    def resume(path):
        model, optimizer = build()
        if path is not None:
            checkpoint = torch.load(%s)
            weights = checkpoint["model"]
            model.load_state_dict(weights)
            optimizer.load_state_dict(checkpoint["optimizer"])
            print("epoch", checkpoint["epoch"])
        step(model, optimizer)
        step(model, optimizer)

    begin()
    torch.cuda.reset_peak_memory_stats()
    resume("last.pt")
    print("done")
"""
MODEL = 64 * MIB


@pytest.mark.parametrize("change", ["map_location", "release_checkpoint"])
@pytest.mark.parametrize("arguments", ["path", 'path, map_location="cuda"', 'f=path, map_location=torch.device("cuda", 0)'])
def test_the_model_s_part_of_the_checkpoint_goes(saves, change, arguments):
    """An optimizer keeps the loaded tensors: of the three parts that are loaded one is there for nothing."""
    if "f=" in arguments and change == "map_location":
        arguments = arguments[2:]
    before, after, entry = saves(RESUMED % arguments, change)
    assert before.allocated - after.allocated == MODEL
    assert entry["results"] == "same" and entry["applied"]
    assert ('map_location="cpu"' if change == "map_location" else "+        checkpoint = None") in entry["patch"]


def test_a_checkpoint_on_the_cpu_is_left_there(on_cpu):
    entry = on_cpu((RESUMED % 'path, map_location="cpu"').replace(".cuda()", "").replace(', device="cuda"', "")
                   .replace("torch.cuda.reset_peak_memory_stats()", "").replace(", fused=True", ""), "map_location").document["changes"][0]
    assert not entry["applied"] or entry["effective"] == 0, entry


def test_what_is_read_later_stays(on_cpu):
    """In another function; in a loop that goes backward."""
    entry = on_cpu("""
        import torch
        torch.save({"a": torch.ones(1, requires_grad=True)}, "a.pt")
        first = torch.load("a.pt")
        def show():
            print(first)
        second = torch.load("a.pt")
        for part in range(2):
            (second["a"] * 2).sum().backward()
        show()
        """, "release_checkpoint").document["changes"][0]  # fmt: skip
    assert not entry["applied"], entry
