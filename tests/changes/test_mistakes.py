# SPDX-License-Identifier: Apache-2.0
"""Changes that undo a mistake: what they save is what theory says, and the patch saves the same."""

from conftest import MIB

DELETED = """
    import torch
    from torch import nn

    def train():
        model = nn.Linear(4096, 4096, bias=False).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(8, 4096, device="cuda")).sum().backward()
        optimizer.step()
        return model, optimizer

    model, optimizer = train()
    del model
    model, optimizer = train()
    print("done")
"""


def test_the_optimizer_goes_with_its_deleted_model(saves):
    before, after, entry = saves(DELETED, "release_holders")
    assert before.allocated - after.allocated >= 4 * 64 * MIB  # parameters, gradients, two moments
    assert [place["line"] for place in entry["places"]] == [12] and entry["results"] == "same"


def test_what_is_still_used_stays_with_a_deleted_model(on_cpu):
    """Read later, or where it may not have been bound again; read by a function that is called later; not made of the
    model; in a loop."""
    entry = on_cpu("""
        import torch
        from torch import nn
        other = 1
        model, saved, state, maybe = nn.Linear(2, 2), 2, 3, 4
        def show():
            return state
        del model
        print(saved, show(), other)
        if other > 1:
            maybe = 5
        print(maybe)
        for round in range(2):
            model = nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=1)
            del model
        """, "release_holders").document["changes"][0]  # fmt: skip
    assert not entry["applied"], entry


IN_VAIN = """
    import torch
    from torch import nn

    net = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.ReLU()))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=.1)

    def draw(x):
        return net(
            x).mean().item()

    for step in range(4):
        x = torch.randn(8192, 512, device="cuda")
        net(x).sum().backward()
        optimizer.step()
        if step % 2 == 0:
            shown = net(x)
        draw(x)
    print("done")
"""


def test_results_that_are_only_looked_at(saves, virtual):
    """The graph of `shown` lives through the next step. Both places are in the survey; the patch of a call on two lines is one of its
    statement."""
    survey = virtual(IN_VAIN, "survey").document["survey"]
    row = next(row for row in survey["possible"] if row["id"] == "unused_graphs")
    assert row["results"] == "same" and row["values"] == ["program.py:8; program.py:16"]
    before, after, entry = saves(IN_VAIN, "unused_graphs=" + row["values"][0])
    assert before.allocated - after.allocated >= 7 * 16 * MIB  # outputs of the layers, but the last
    assert [place["line"] for place in entry["places"]] == [8, 16] and entry["results"] == "same"
    assert "+        with torch.no_grad():\n+            shown = net(x)" in entry["patch"]


def test_graphs_that_are_used_later_stay(virtual):
    """Of a generator while the discriminator goes backward; of losses that are summed; of a function that both call."""
    program = IN_VAIN.replace("shown = net(x)", "shown = net(x); shown.sum().backward()").replace("draw(x)\n", "draw(x)\n        net(x).sum().backward()\n")
    survey = virtual(program, "survey").document["survey"]
    values = [row["values"] for row in survey["possible"] if row["id"] == "unused_graphs"]
    assert values == [["program.py:8"]], values


PRUNED = """
    import torch
    from torch import nn
    from torch.nn.utils import prune

    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(16))).cuda()
    for module in model:
        prune.random_unstructured(module, name="weight", amount=0.5)
    %s
    print("done")
"""


def test_pruned_modules_without_their_masks(saves):
    before, after, entry = saves(PRUNED % "model(torch.ones(1, 1024).cuda())", "prune_remove")
    assert before.allocated - after.allocated >= 2 * 14 * 4 * MIB  # old weights and masks, but those at work
    assert entry["results"] == "same" and "+    prune.remove(module, \"weight\")" in entry["patch"]


def test_pruned_weights_that_are_trained_again_are_another_training(on_cpu):
    """The masks would have kept them at zero."""
    train = "optimizer = torch.optim.SGD(model.parameters(), lr=1); model(torch.ones(1, 1024)).sum().backward(); optimizer.step()"
    program = (PRUNED % train).replace(".cuda()", "").replace("1024", "64")
    survey = on_cpu(program, "survey").document["survey"]
    assert {row["id"]: row["results"] for row in survey["possible"]}["prune_remove"] == "different_training"
    assert on_cpu(program, "prune_remove").change("prune_remove")["results"] == "different_training"


SAVED = """
    import copy
    import io
    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()
    average = copy.deepcopy(model)
    best = copy.deepcopy({"model": model.state_dict(), "epoch": [1, (2, 3)]})
    model.load_state_dict(best["model"])
    print(best["epoch"], next(average.parameters()).device.type)
"""


def test_a_copied_state_lies_on_the_host_and_a_copied_model_does_not(saves):
    before, after, entry = saves(SAVED, "copies_to_host")
    assert 256 * MIB <= before.allocated - after.allocated <= 257 * MIB
    assert [place["line"] for place in entry["places"]] == [8] and entry["results"] == "same"
    assert after.stdout == before.stdout == "[1, (2, 3)] cuda\n"


def test_a_limit_of_the_programs_own_goes(virtual):
    program = """
        import torch
        torch.cuda.set_per_process_memory_fraction(0.25, device=0)
        x = torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
        print("done")
    """
    virtual(program, status=10)
    after = virtual(program, "memory_fraction")
    entry = after.change("memory_fraction")
    assert virtual(program, patch=entry["patch"]).peaks == after.peaks


SAMPLES = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        def __init__(self):
            self.samples = [torch.full((4096, 256), float(i), device="cuda") for i in range(64)]
            self.names = [str(i) for i in range(64)]

        def __len__(self):
            return len(self.samples)

        def __getitem__(self, index):
            return self.samples[index], self.names[index]

    for x, name in DataLoader(Pictures(), batch_size=4):
        x = x * 2
    print(x.device.type, name[-1])
"""


def test_prepared_samples_stay_on_the_host(saves):
    before, after, entry = saves(SAMPLES, "data_on_host")
    assert before.allocated - after.allocated >= 48 * 4 * MIB
    assert after.stdout == before.stdout == "cuda 63\n"
    assert "self.samples[index].cuda(), self.names[index]" in entry["patch"]


GROWING = """
    import torch
    from torch import nn

    model = nn.Linear(1024, 1024).cuda().eval()
    loader = [torch.ones(256, 1024) for _ in range(16)]
    found = torch.empty(0, 1024, device="cuda")
    with torch.no_grad():
        for x in loader:
            found = torch.cat([found, model(x.cuda())])
    print(tuple(found.shape))
"""


def test_what_grows_by_cat_moves_to_the_host(saves):
    before, after, entry = saves(GROWING, "outputs_to_host")
    assert before.allocated - after.allocated >= (31 - 4) * MIB  # the old and the new at the end, but what a batch takes
    assert after.stdout == before.stdout == "(4096, 1024)\n"
