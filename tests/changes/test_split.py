# SPDX-License-Identifier: Apache-2.0
"""Accumulation where the program draws its batches itself: the text is cut, with the same gradients, and the patch is what ran."""

import json

import pytest

HEAD = """
    import collections, json, torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    seen = []
    batch_size = 8

    def note(optimizer, args, kwargs):
        seen.append([p.grad.abs().sum().item() for g in optimizer.param_groups for p in g["params"]])

    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(note)
"""
END = """
    print(json.dumps(seen))
"""
LOOPS = {
    "a function's": """
    def get_batch():
        return torch.randn(8, 12), torch.randint(5, (8,))

    for step in range(4):
        optimizer.zero_grad()
        x, y = get_batch()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    """,
    "a replay buffer's, used twice": """
    Samples = collections.namedtuple("Samples", "x y weight")

    class Buffer:
        def sample(self, count):
            return Samples(torch.randn(count, 12), torch.randint(5, (count,)), 3)

    buffer = Buffer()
    for step in range(4):
        data = buffer.sample(batch_size)
        with torch.no_grad():
            target = model(data.x)
        loss = nn.functional.cross_entropy(model(data.x), data.y) + (model(data.x) - 2 * target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            second = model(data.x).square().mean()
            optimizer.zero_grad()
            second.backward()
            optimizer.step()
        assert len(data.x) == 8
    """,
    "tensors drawn inline, and a sum": """
    for step in range(4):
        x = torch.randn(8, 12)
        y = torch.randint(5, (8,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        optimizer.step()
    """,
    "a mean with weights": """
    for step in range(4):
        x = torch.randn(8, 12)
        weight = torch.ones(len(x))
        score = (weight * model(x).square().mean(1)).sum() / weight.sum()
        loss = (score + score) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    "an iterator's, in a function": """
    batches = iter([{"x": torch.randn(8, 12), "y": torch.randint(5, (8,)), "kind": "head"} for _ in range(4)])

    def train_step(batches):
        optimizer.zero_grad()
        batch = next(batches)
        loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        loss.backward()
        optimizer.step()

    for step in range(4):
        train_step(batches)
    """,
    "handed to a function that updates on it many times": """
    def fit(model, x, y, turns):
        for turn in range(turns):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model(x).detach()

    for x, y in torch.utils.data.DataLoader([(torch.randn(12), 1)] * 16, batch_size=8):
        assert len(fit(model, x, y, turns=2)) == 8
    """,
}


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_agree_and_so_do_those_of_the_patch(on_cpu, name):
    program = HEAD + LOOPS[name] + END
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    assert entry["results"] == "same_up_to_rounding" and "in_pieces" in entry["patch"]
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == len(two) >= 4
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)
    assert on_cpu(program, patch=entry["patch"]).stdout == after.stdout


@pytest.mark.parametrize("name", LOOPS)
def test_updates_are_made_of_as_much(virtual, name):
    """Samples of an update, its loss's share and learning rates, as the mechanism's own check sees them."""
    program = HEAD.replace("torch.manual_seed(0)", 'torch.set_default_device("cuda")') + LOOPS[name] + END
    before, after = (virtual(program, changes).document["pace"] for changes in ("nothing", "accumulate=4"))
    assert before["samples"] >= 8 and after["backward"] == 4 * before["backward"]
    for figure in ("updates", "samples", "loss_share", "learning_rates"):
        assert before[figure] == after[figure], figure


def test_what_is_called_with_the_size_of_a_batch_is_no_batch(on_cpu):
    """A schedule, an endless iterator and a model made with it; the loader's batches come in pieces as ever."""
    program = HEAD + """
    def rates(batch_size):
        return lambda step: 0.1 / (1 + step / batch_size)

    def endless(loader, batch_size):
        while True:
            yield from loader

    loader = torch.utils.data.DataLoader(torch.randn(32, 12), batch_size=8)
    rate = rates(batch_size)
    batches = endless(loader, batch_size)
    scale = rates(batch_size=batch_size)
    for step in range(4):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad()
        x = batches.__next__()
        loss = model(x).square().mean() * scale(0)
        loss.backward()
        optimizer.step()
""" + END
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    assert entry["applied"] and "in_pieces" not in entry["patch"]
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == len(two) == 4
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "loop",
    [
        # a state that one batch hands on to the next
        """
    hidden = torch.zeros(8, 12)
    for step in range(4):
        x = torch.randn(8, 12)
        out = model(x + hidden)
        hidden = hidden + x
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
    """,
        # more is drawn for the whole batch
        """
    for step in range(4):
        x = torch.randn(8, 12)
        out = model(x)
        noise = torch.randn(8, 5)
        loss = (out + noise).square().mean()
        loss.backward()
        optimizer.step()
    """,
        # samples are counted from the first of the batch
        """
    for step in range(4):
        x = torch.randn(8, 12)
        loss = model(x[4:]).square().mean()
        loss.backward()
        optimizer.step()
    """,
        # what is divided by is of all samples
        """
    for step in range(4):
        x = torch.randn(8, 12)
        out = model(x)
        loss = ((out - out.mean()) / out.std()).pow(4).mean()
        loss.backward()
        optimizer.step()
    """,
        # a graph's nodes are no samples
        """
    def fit(x, edges):
        for turn in range(4):
            loss = model(x.index_add(0, edges[0], x[edges[1]])).square().mean() + model(x).square().mean()
            loss.backward()
            optimizer.step()

    fit(torch.randn(8, 12), torch.randint(8, (2, 20)))
    """,
        # the second loss reads what the first part has left
        """
    for step in range(4):
        x = torch.randn(8, 12)
        made = model(x)
        made.square().mean().backward(retain_graph=True)
        loss = (made + model(x)).square().mean()
        loss.backward()
        optimizer.step()
    """,
    ],
)
def test_what_pieces_are_no_parts_of_is_left_alone(on_cpu, loop):
    entry = on_cpu(HEAD + loop + END, "accumulate=2").document["changes"][0]
    assert not entry["applied"] and entry["patch"] is None


def test_a_batch_that_does_not_divide_fails(on_cpu):
    program = HEAD + LOOPS["a function's"] + END
    assert "does not divide by 3" in on_cpu(program, "accumulate=3", status=1).stderr


def test_the_survey_offers_it(on_cpu):
    document = on_cpu(HEAD + LOOPS["a function's"] + END, "survey").document
    offered = [row for row in document["survey"]["possible"] if row["id"] == "accumulate"]
    assert offered and offered[0]["values"][0] == "2"


def test_an_optimizer_on_the_host_is_held_back_with_the_others(virtual):
    """A trial of both is what the patch of both does, to the byte, and its updates are seen."""
    program = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        model = nn.Sequential(*(nn.Linear(512, 512, bias=False) for _ in range(4))).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for (x,) in DataLoader(TensorDataset(torch.randn(128, 512)), batch_size=32):
            optimizer.zero_grad()
            loss = model(x.cuda()).square().mean()
            loss.backward()
            optimizer.step()
        print("done")
    """
    after = virtual(program, "offload_optimizer,accumulate=4")
    assert after.document["pace"]["updates"] == 4 and after.document["pace"]["backward"] == 4
    assert virtual(program, patch=after.document["patch"]).peaks == after.peaks


def test_what_a_module_does_as_a_script_is_not_the_programs(virtual):
    """`if __name__ == "__main__":` of a module that the program imports is not run: its batch is not cut, the program's own loader is."""
    module = """
import torch

net = torch.nn.Linear(4, 4)

if __name__ == "__main__":
    x = torch.randn(8, 4)
    loss = net(x).square().mean()
    loss.backward()
    print(net(x))
"""
    program = """
    import torch
    from module import net
    from torch.utils.data import DataLoader, TensorDataset

    model = net.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, in DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8):
        optimizer.zero_grad()
        model(x.cuda()).square().mean().backward()
        optimizer.step()
    """
    entry = virtual(program, "accumulate=2", files={"module.py": module}).change("accumulate")
    assert {place["file"].rpartition("/")[2] for place in entry["places"]} == {"program.py"}, entry
    assert "module.py" not in entry["patch"] and "batch_size=4" in entry["patch"], entry["patch"]
