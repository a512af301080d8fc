# SPDX-License-Identifier: Apache-2.0
"""What a program moves with each batch beside its gradients moves once a batch when the batch comes in pieces."""

import json

import pytest
from test_accumulate import HEAD, MODELS

# Two ways to write a schedule of one's own, as BERT-pytorch and Annotated Transformer have them.
SCHEDULES = {
    "numbers behind": """
    class Schedule:
        def __init__(self, optimizer):
            self.optimizer, self.steps = optimizer, 0

        def zero_grad(self):
            self.optimizer.zero_grad()

        def step(self):
            self.optimizer.step()
            self.steps += 1
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 / (1 + self.steps)
    """,
    "numbers in front": """
    class Schedule:
        def __init__(self, optimizer):
            self.optimizer, self.steps = optimizer, 0

        def zero_grad(self):
            self.optimizer.zero_grad()

        def step(self):
            self.steps += 1
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 / (1 + self.steps)
            self.optimizer.step()
    """,
}
LOOP = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(note)
    schedule = Schedule(optimizer)
    progress = lambda batches, total: batches
    rates = []
    optimizer.register_step_post_hook(lambda o, a, k: rates.append(o.param_groups[0]["lr"]))
    for epoch in range(2):
        loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
        for x, y in progress(loader, total=len(loader)):
            schedule.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            schedule.step()
    print(json.dumps([seen, rates, schedule.steps]))
"""


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_of_the_programs_own_moves_once_a_batch(on_cpu, kind):
    program = HEAD + MODELS["perceptron"] + SCHEDULES[kind] + LOOP
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    assert after.change("accumulate")["results"] == "same_up_to_rounding"
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert two[1:] == one[1:] and len(one[1]) == 4
    for a, b in zip(one[0], two[0]):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


def test_the_patch_guards_what_the_loop_calls(on_cpu):
    program = HEAD + MODELS["perceptron"] + SCHEDULES["numbers behind"] + LOOP
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    assert json.loads(patched.stdout)[1:] == json.loads(before.stdout)[1:]


NUMBERED = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [100])
    step = 0
    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=20):
            step += 1
            %s
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        %s
"""


@pytest.mark.parametrize("in_loop, behind, results", [("schedule.step(step)", "pass", "different_training"), ("schedule.step(epoch)", "pass", "same_up_to_rounding"),
                                                      ("pass", "schedule.step(epoch)", "same_up_to_rounding")])  # fmt: skip
def test_a_schedule_that_is_told_a_number_which_counts_pieces_is_another_training(on_cpu, in_loop, behind, results):
    """The rate is the same for the first 50 updates all the same."""
    outcome = on_cpu(HEAD + MODELS["perceptron"] + NUMBERED % (in_loop, behind), "accumulate=2")
    entry = outcome.change("accumulate")
    assert entry["results"] == results, outcome.stderr
    assert ("counts micro-batches then: divide it by 2" in entry["how"]) == (results != "same_up_to_rounding"), entry["how"]


AVERAGE = """
    import copy
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=16, drop_last=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(model.parameters(), average.parameters()):
                q.data.mul_(0.9).add_(p.detach().data, alpha=0.1)
    print(json.dumps([q.sum().item() for q in average.parameters()]))
"""


def test_an_average_of_the_model_moves_with_the_update(on_cpu):
    program = HEAD + MODELS["perceptron"] + AVERAGE
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    assert json.loads(after.stdout) == pytest.approx(json.loads(before.stdout), rel=1e-9)
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    assert json.loads(patched.stdout) == pytest.approx(json.loads(before.stdout), rel=1e-9)


AVERAGES = {
    "torch's": ("average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda a, p, n: 0.9 * a + 0.1 * p)",
                "average.update_parameters(model)", "[q.sum().item() for q in average.parameters()]"),
    "two tables": ("average = copy.deepcopy(model)", "blend(average, model)", "[q.sum().item() for q in average.parameters()]"),
    "a table": ("average = Average(model)", "average.update()", "[q.sum().item() for q in average.shadow.values()]"),
}
AVERAGED = """
    class Average:
        def __init__(self, model):
            self.model, self.shadow = model, {name: p.detach().clone() for name, p in model.named_parameters()}

        def update(self):
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    self.shadow[name] = 0.1 * p.data + 0.9 * self.shadow[name]

    def blend(one, other):
        ones, others = dict(one.named_parameters()), dict(other.named_parameters())
        for key in ones:
            ones[key].data.mul_(0.9).add_(others[key].data, alpha=0.1)

    import copy, torch.optim.swa_utils
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    %s
    for x, y in DataLoader(data, batch_size=16, drop_last=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        %s
    print(json.dumps(%s))
"""


@pytest.mark.parametrize("kind", AVERAGES)
def test_an_average_that_no_loop_over_two_models_makes_moves_with_the_update(on_cpu, kind):
    program = HEAD + MODELS["perceptron"] + AVERAGED % AVERAGES[kind]
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    assert json.loads(after.stdout) == pytest.approx(json.loads(before.stdout), rel=1e-9)
    patch = after.change("accumulate")["patch"]
    if "table" in kind:
        assert patch is None  # the average is not made in the loop: words have to do
    else:
        assert json.loads(on_cpu(program, patch=patch).stdout) == pytest.approx(json.loads(before.stdout), rel=1e-9)


def adversary(first, second):
    return HEAD + """
    import itertools
    one, two = nn.Linear(8, 8).cuda(), nn.Linear(8, 1).cuda()
    data = TensorDataset(torch.randn(32, 8))
    makes, judges = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=0.1)
    for x, in DataLoader(data, batch_size=16):
        x = x.cuda()
        made = one(x)
%s%s
""" % (first, second)


JUDGE = """
        judges.zero_grad()
        (two(x) - two(made.detach())).mean().backward()
        judges.step()
"""
MAKE = """
        makes.zero_grad()
        two(made).mean().backward()
        makes.step()
"""


def test_a_model_that_is_used_again_after_its_update_makes_it_another_training(virtual):
    """Calls are seen on a GPU only. The other way round the judge's loss sees nothing of what was updated."""
    assert virtual(adversary(JUDGE, MAKE), "accumulate=2").change("accumulate")["results"] == "different_training"
    assert virtual(adversary(MAKE, JUDGE), "accumulate=2").change("accumulate")["results"] == "same_up_to_rounding"


# Loops that fetch batches themselves, and plan by the loader's length; the rate depends on the loop's value.
FETCHING = """
    def forever(loader):
        while True:
            yield from loader

    loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
    batches = forever(loader)
    steps = len(loader)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(note)
    rates = []
    optimizer.register_step_post_hook(lambda o, a, k: rates.append(o.param_groups[0]["lr"]))
    seeing = []
"""
SINGLE = """
    for turn in range(3 * steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (1 + turn)
        optimizer.zero_grad()
        x, y = next(batches)
        if turn == 0:
            continue
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(json.dumps([seen, rates]))
"""
NESTED = """
    for turn in range(steps):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + turn)
        for _ in range(2):
            x, y = next(batches)
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(json.dumps([seen, rates]))
"""


@pytest.mark.parametrize("loop", (SINGLE, NESTED))
def test_a_loop_that_fetches_batches_itself_makes_as_many_updates_at_the_same_rates(on_cpu, loop):
    whole = MODELS["perceptron"].replace("44", "48")
    program = HEAD + whole + FETCHING + loop
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    change = after.change("accumulate")
    assert change["results"] == "same_up_to_rounding"
    one = json.loads(before.stdout)
    assert len(one[1]) == (8 if loop is SINGLE else 3)
    for outcome in (after, on_cpu(program, patch=change["patch"])):
        two = json.loads(outcome.stdout)
        assert two[1] == one[1], change["patch"]
        for a, b in zip(one[0], two[0]):
            assert b == pytest.approx(a, rel=1e-9, abs=1e-12), change["patch"]


PLANNED = """
    loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=%s)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=2 * len(loader))
    rates = []
    optimizer.register_step_post_hook(lambda o, a, k: rates.append(o.param_groups[0]["lr"]))
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
    print(json.dumps(rates))
"""


def test_a_schedule_that_is_planned_by_the_loaders_length_stays(on_cpu):
    program = HEAD + MODELS["perceptron"] + PLANNED % True
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    assert json.loads(before.stdout) == json.loads(after.stdout) == json.loads(patched.stdout)
    program = HEAD + MODELS["perceptron"] + PLANNED % False
    assert "-(-len(loader) // 4)" in on_cpu(program, "accumulate=4").change("accumulate")["patch"]


def test_a_counter_of_the_loop_is_named_since_it_counts_pieces(on_cpu):
    loop = """
    optimizer, step = torch.optim.SGD(model.parameters(), lr=0.1), 0
    for x, y in DataLoader(data, batch_size=16):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
    """
    how = on_cpu(HEAD + MODELS["perceptron"] + loop, "accumulate=4").change("accumulate")["how"]
    assert "step counts micro-batches then, 4 for each batch" in how and "micro_step counts" not in how
