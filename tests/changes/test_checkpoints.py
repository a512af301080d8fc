# SPDX-License-Identifier: Apache-2.0
"""Changes to how a checkpoint is loaded: what they save is the checkpoint, and the patch saves the same."""

from conftest import MIB

import pytest

RESUMED = """
    import torch
    from torch import nn

    def build():
        model = nn.Linear(2048, 2048, bias=False).cuda()
        return model, torch.optim.Adam(model.parameters(), fused=True)

    def step(model, optimizer):
        model(torch.randn(8, 2048, device="cuda")).sum().backward()
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
MODEL = 16 * MIB


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


def test_names_of_an_inner_and_of_an_outer_block_that_end_at_one_line(on_cpu):
    """As KAIR's load_network: the rendered text is Python, and what is deleted already is left alone."""
    entry = on_cpu("""
        import torch
        torch.save({"a": torch.ones(1)}, "a.pt")
        def load(strict, bare):
            loaded = torch.load("a.pt")
            if strict:
                kept = {key: value for key, value in loaded.items()}
                print(kept)
            else:
                part = {key: value for key, value in loaded.items()}
                kept = part["a"]
                print(kept, part)
        def replace():
            loaded = torch.load("a.pt")
            print(loaded)
            del loaded
        for strict in (True, False):
            load(strict, True)
        replace()
        """, "release_checkpoint").document["changes"][0]  # fmt: skip
    assert entry["applied"], entry
    added = [row[1:] for row in entry["patch"].splitlines() if row.startswith("+") and not row.startswith("+++")]
    assert added == ["        part = None", "    loaded = None", "    kept = None"], entry["patch"]


TRAINED = """
    import torch
    from torch import nn
    %s

    model = nn.Linear(2048, 2048, bias=False).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    def step():
        model(torch.randn(8, 2048, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    %s
    torch.cuda.reset_peak_memory_stats()
    %s
    model.load_state_dict(weights)
    step()
    print("done")
"""


def test_a_file_of_safetensors_is_read_onto_the_cpu(saves):
    program = TRAINED % ("from safetensors.torch import load_file, save_file", 'step(); save_file(model.state_dict(), "w.safetensors")',
                         'weights = load_file("w.safetensors", device="cuda")')  # fmt: skip
    before, after, entry = saves(program, "map_location")
    assert before.allocated - after.allocated == MODEL and entry["results"] == "same"
    assert 'load_file("w.safetensors", device="cpu")' in entry["patch"]


@pytest.mark.parametrize("imported, name", [("import torch.distributed.checkpoint as dcp", "dcp.load"),
                                            ("from torch.distributed.checkpoint import load, save", "load")])  # fmt: skip
def test_tensors_that_shards_are_read_into_are_made_on_the_cpu(saves, imported, name):
    """Two of them, made in one line: one edit."""
    save = name.replace("load", "save")
    program = (TRAINED % (imported, f'step(); {save}({{"model": model.state_dict(), "twice": model.state_dict()}}, checkpoint_id="shards")',
                          f"""loaded = {{part: {{name: torch.empty_like(tensor) for name, tensor in model.state_dict().items()}} for part in ("model", "twice")}}
    {name}(loaded, checkpoint_id="shards")
    weights = loaded["model"]"""))  # fmt: skip
    before, after, entry = saves(program, "map_location")
    assert before.allocated - after.allocated == 2 * MODEL and entry["results"] == "same"
    assert entry["patch"].count('torch.empty_like(tensor, device="cpu")') == 1


def test_what_is_loaded_in_a_loop_is_edited_once(saves):
    program = TRAINED % ("", 'step(); torch.save(model.state_dict(), "w.pt")', """kept = []
    for turn in range(3):
        kept.append(torch.load("w.pt"))
    weights = kept[0]""")
    before, after, entry = saves(program, "map_location")
    assert before.allocated - after.allocated == 3 * MODEL
    assert entry["patch"].count('map_location="cpu"') == 1
