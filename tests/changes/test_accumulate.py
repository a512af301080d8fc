# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation keeps the gradients and the batches; a smaller batch is another training."""

import json

import pytest
from conftest import MIB

# Three models. Each prints, for every update, the gradients' norms by parameter, in double precision.
HEAD = """
    import json, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    seen = []

    def note(optimizer, args, kwargs):
        seen.append([p.grad.abs().sum().item() for g in optimizer.param_groups for p in g["params"]])
"""
MODELS = {
    "perceptron": """
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
    data = TensorDataset(torch.randn(44, 12), torch.randint(5, (44,)))
    """,
    "convolution": """
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    data = TensorDataset(torch.randn(44, 3, 8, 8), torch.randint(5, (44,)))
    """,
    "transformer": """
    class Texts(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(30, 16)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
            self.head = nn.Linear(16, 5)

        def forward(self, tokens):
            return self.head(self.layer(self.words(tokens)).mean(1))

    model = Texts()
    data = TensorDataset(torch.randint(30, (44, 7)), torch.randint(5, (44,)))
    """,
}
LOOP = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.register_step_pre_hook(note)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
    print(json.dumps(seen))
"""


@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_within_rounding(on_cpu, name):
    program = HEAD + MODELS[name] + LOOP
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    assert entry["results"] == "same_up_to_rounding" and entry["effective"] == 6
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == len(two) == 6  # 44 samples are three batches an epoch, the last one smaller
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


def test_gradients_agree_with_a_gradient_scaler_and_zeroing_behind_the_update(on_cpu):
    loop = LOOP.replace("            optimizer.zero_grad()\n", "")
    loop = loop.replace("loss.backward()", "scaler.scale(loss).backward()")
    loop = loop.replace("optimizer.step()", "scaler.step(optimizer); scaler.update(); optimizer.zero_grad()")
    program = HEAD + MODELS["perceptron"] + "scaler = torch.amp.GradScaler(enabled=False)\n" + loop
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    assert after.change("accumulate")["effective"] == 6
    for a, b in zip(json.loads(before.stdout), json.loads(after.stdout)):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


def test_a_loss_that_is_a_sum_is_not_divided(on_cpu):
    program = HEAD + MODELS["perceptron"] + LOOP.replace("model(x), y)", "model(x), y, reduction='sum')")
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    after.change("accumulate")
    for a, b in zip(json.loads(before.stdout), json.loads(after.stdout)):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


# What a sum is divided by: the size of the piece makes it a mean, which the pieces share; a number that is always the same does not.
SUMS = {
    "rows": "nn.functional.cross_entropy(model(x), y, reduction='sum') / len(x)",
    "elements": "nn.functional.mse_loss(model(x), one_hot(y), reduction='sum') / (5 * y.shape[0])",
    "in_a_sum": "(nn.functional.l1_loss(model(x), one_hot(y), reduction='sum') / x.size(0) + model(x).square().sum() / x.size(0)) * 2",
    "none_summed": "nn.functional.cross_entropy(model(x), y, reduction='none').sum() / x.size(0)",
    "a_number": "nn.functional.cross_entropy(model(x), y, reduction='sum') / 16",
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_divided_by_its_size_is_a_mean(on_cpu, name):
    program = HEAD + MODELS["perceptron"] + "one_hot = lambda y: nn.functional.one_hot(y, 5).double()\n" + LOOP.replace(
        "nn.functional.cross_entropy(model(x), y)", SUMS[name])
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    assert ("divide the loss by 4" in after.change("accumulate")["how"]) == (name != "a_number")
    for a, b in zip(json.loads(before.stdout), json.loads(after.stdout), strict=True):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


ON_CARD = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    model = nn.Linear(12, 5).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for x, y in DataLoader(TensorDataset(torch.randn(96, 12), torch.randint(5, (96,))), batch_size=16):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda(), reduction="sum") / %s
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("by, share", [("x.shape[0]", 1 / 16), ("16", 1 / 16), ("3", 1 / 3)])
def test_the_losses_of_an_update_weigh_the_same(virtual, by, share):
    for change in ("survey", "accumulate=4"):
        pace = virtual(ON_CARD % by, change).document["pace"]
        assert (pace["samples"], pace["loss_share"]) == (16, pytest.approx(share, abs=1e-6)), change


def test_a_number_that_is_the_size_of_a_piece_is_no_promise(virtual):
    """It is taken for the piece's size. The losses of an update are then seen to weigh less than when unchanged."""
    before, after = virtual(ON_CARD % "4", "survey"), virtual(ON_CARD % "4", "accumulate=4")
    assert after.document["pace"]["loss_share"] == pytest.approx(before.document["pace"]["loss_share"] / 4)


@pytest.mark.parametrize("condition", ["", "if epoch < 5: "])
def test_the_patch_has_the_same_gradients(on_cpu, condition):
    """Also where what comes right before the update is a block of its own."""
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)"
    within = clip if not condition else condition + "\n                " + clip
    program = HEAD + MODELS["perceptron"].replace("44", "48") + LOOP.replace(clip, within)
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    one, two = json.loads(before.stdout), json.loads(patched.stdout)
    assert len(one) == len(two) == 6
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


IN_A_FUNCTION = {
    "method": """
    class Trainer:
        def __init__(self):
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            self.optimizer.register_step_pre_hook(note)

        def update(self, x, y):
            \"\"\"One update.\"\"\"
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            self.optimizer.step()

    update = Trainer().update
    """,
    "function": """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.register_step_pre_hook(note)

    def update(x, y):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    """,
}
CALLS = """
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=16, shuffle=True):
            update(x, y)
    print(json.dumps(seen))
"""


@pytest.mark.parametrize("where", IN_A_FUNCTION)
def test_the_patch_counts_in_a_function_that_is_called_with_each_batch(on_cpu, where):
    program = HEAD + MODELS["perceptron"].replace("44", "48") + IN_A_FUNCTION[where] + CALLS
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    one, two = json.loads(before.stdout), json.loads(patched.stdout)
    assert len(one) == 6
    for a, b in zip(one, two, strict=True):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("body", ["update(x, y); update(x, y)", "update(x, y) if epoch else None"])
def test_a_function_that_is_not_called_once_with_each_batch_gets_no_patch(on_cpu, body):
    calls = CALLS.replace("update(x, y)", body)
    program = HEAD + MODELS["perceptron"].replace("44", "48") + IN_A_FUNCTION["method"] + calls
    assert on_cpu(program, "accumulate=4").change("accumulate")["patch"] is None


BY_HAND = {
    "none": "for parameter in model.parameters():\n                parameter.grad = None",
    "zeros": "for group in optimizer.param_groups:\n                for p in group['params']:\n                    if p.grad is not None:\n"
             "                        p.grad.detach_()\n                        p.grad.zero_()",
}  # fmt: skip


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("way", BY_HAND)
def test_gradients_that_are_cleared_by_hand_are_those_of_the_batch(on_cpu, way, place):
    """In the trial and in its patch."""
    loop = LOOP.replace("optimizer.zero_grad()", BY_HAND[way])
    if place == "after":
        loop = LOOP.replace("            optimizer.zero_grad()\n", "").replace("schedule.step()", "schedule.step()\n            " + BY_HAND[way])
    program = HEAD + MODELS["perceptron"].replace("44", "48") + loop
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    assert entry["results"] == "same_up_to_rounding"
    assert after.document["pace"]["passes"] == [[[4, 4]] * 6]
    patched = on_cpu(program, patch=entry["patch"])
    one, two, three = (json.loads(run.stdout) for run in (before, after, patched))
    assert len(one) == 6
    for a, b, c in zip(one, two, three, strict=True):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12) and c == pytest.approx(a, rel=1e-9, abs=1e-12)


def test_gradients_of_an_input_are_cleared_as_ever(on_cpu):
    """Adversarial training: what perturbs a piece has nothing to do with the update."""
    program = HEAD + MODELS["perceptron"] + """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=16):
        noise = torch.zeros_like(x, requires_grad=True)
        for number in range(2):
            nn.functional.cross_entropy(model(x + noise), y).backward()
            seen.append(noise.grad.abs().sum().item() > 0)
            noise.grad.zero_()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x + noise), y).backward()
        optimizer.step()
    print(json.dumps(seen), noise.grad.abs().max() > 0)
    """
    after = on_cpu(program, "accumulate=2")
    patch = after.change("accumulate")["patch"]
    assert patch is None or "noise.grad" not in "".join(line for line in patch.splitlines() if line.startswith("+"))


@pytest.mark.parametrize("words, said", [("", False), (", ignore_index=0", True), (", ignore_index=0, reduction='sum'", False)])
def test_a_mean_over_targets_that_are_not_ignored_is_told(on_cpu, words, said):
    program = HEAD + MODELS["perceptron"] + LOOP.replace("cross_entropy(model(x), y)", f"cross_entropy(model(x), y{words})")
    entry = on_cpu(program, "accumulate=4").change("accumulate")
    assert ("targets that are not 0 (ignore_index)" in entry["how"]) == said, entry["how"]


@pytest.mark.parametrize("drawn, said", [("", None), ("np.random.beta(0.8, 0.8)", "numpy.random"), ("random.random()", "random"),
                                         ("np.random.randint(9, size=len(x))", None), ("np.random.rand(700)", None)])  # fmt: skip
def test_what_is_drawn_once_a_batch_is_told(on_cpu, drawn, said):
    """Mixup draws one share for all samples; a step of diffusion, one for each."""
    program = HEAD + "    import random, numpy as np\n" + MODELS["perceptron"] + LOOP.replace("optimizer.zero_grad()", f"optimizer.zero_grad(); {drawn}")
    entry = on_cpu(program.replace("batch_size=16", "batch_size=44"), "accumulate=2").change("accumulate")
    assert [name for name in ("numpy.random", "random") if f"once per batch with {name}," in entry["how"]] == [said] * bool(said), entry["how"]


# A program that accumulates by itself: two batches of 16 make an update.
OWN = {
    "by_number": """
    for epoch in range(2):
        for number, (x, y) in enumerate(DataLoader(data, batch_size=16)):
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
            if (number + 1) % 2 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
    """,
    "nested": """
    def cycle(loader):
        while True:
            yield from loader

    batches = cycle(DataLoader(data, batch_size=16))
    for update in range(4 * (4 if os.environ.get("TONNAGE_CHANGES") else 1)):
        optimizer.zero_grad()
        for _ in range(2):
            x, y = next(batches)
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    """,
    "scaler": """
    scaler = torch.amp.GradScaler(enabled=False)
    for epoch in range(2):
        for number, (x, y) in enumerate(DataLoader(data, batch_size=16)):
            if number % 2 == 0:
                model.zero_grad()
            scaler.scale(nn.functional.cross_entropy(model(x), y) / 2).backward()
            if number % 2 == 1:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                scaler.step(optimizer)
                scaler.update()
                schedule.step()
    """,
}
OWN_HEAD = HEAD.replace("import json", "import json, os") + MODELS["perceptron"].replace("44", "64") + """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.register_step_pre_hook(note)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
"""


@pytest.mark.parametrize("pieces", [2, 4])
@pytest.mark.parametrize("way", OWN)
def test_a_program_that_accumulates_keeps_its_updates(on_cpu, unchanged_on_cpu, way, pieces):
    """Four updates of 32 samples each, with the gradients that they had."""
    program = OWN_HEAD + OWN[way] + "print(json.dumps(seen))\n"
    before, after = unchanged_on_cpu(program), on_cpu(program, f"accumulate={pieces}")
    entry = after.change("accumulate")
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == 4 and len(two) >= 4 and entry["results"] == "same_up_to_rounding", entry
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)
    assert f"every {2 * pieces} micro-batches" in entry["how"], entry["how"]
    if way == "by_number":
        patched = on_cpu(program, patch=entry["patch"])
        for a, b in zip(one, json.loads(patched.stdout), strict=True):
            assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shuffle, results", [(True, "same_up_to_rounding"), (False, "different_training")])
def test_a_batch_from_an_iterator_of_its_own_comes_in_pieces(on_cpu, shuffle, results):
    """The pieces of a batch are those of one, although each is fetched from another iterator. Without drawing they begin with the same samples."""
    program = OWN_HEAD + f"""
    x, y = next(iter(DataLoader(data, batch_size=16)))
    loader = DataLoader(data, batch_size=16, shuffle={shuffle})
    for update in range(4):
        (x, y) = next(iter(loader))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(json.dumps(seen))
    """
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    entry = after.change("accumulate")
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == len(two) == 4 and entry["results"] == results, entry
    assert shuffle or all(b == pytest.approx(a, rel=1e-9, abs=1e-12) for a, b in zip(one, two))
    assert "for value in range(4) for _ in range(4)" in entry["patch"], entry


def test_an_iterator_that_is_kept_feeds_the_training(on_cpu):
    program = OWN_HEAD + """
    class Endless:
        def __init__(self):
            self.batches = iter(DataLoader(data, batch_size=16))
        def next(self):
            return next(self.batches)

    endless = Endless()
    batches = iter(DataLoader(data, batch_size=32))
    def fetch():
        return next(batches)
    for update in range(2):
        for x, y in (endless.next(), fetch()):
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    """
    assert on_cpu(program, "survey").document["survey"]["facts"]["batches"] == [16, 32]


def test_one_batch_that_is_looked_at_feeds_no_training(on_cpu):
    """Loops over two loaders are patched; a third, of which a batch is looked at, stays, as do its size and those of others."""
    look = """
    print(len(next(iter(DataLoader(data, batch_size=6)))[0]))
    batches = iter(DataLoader(data, batch_size=7))
    first = next(batches)
    """
    program = OWN_HEAD + look + OWN["by_number"] + OWN["by_number"].replace("16", "32") + "print(json.dumps(seen))\n"
    before, after = on_cpu(program), on_cpu(program, "accumulate=2")
    entry = after.change("accumulate")
    assert entry["results"] == "same_up_to_rounding" and "batch_size=6" not in entry["patch"] and "to 3" not in entry["how"], entry
    patched = on_cpu(program, patch=entry["patch"])
    for done in (after, patched):
        for a, b in zip(json.loads(before.stdout.split("\n")[1]), json.loads(done.stdout.split("\n")[1]), strict=True):
            assert b == pytest.approx(a, rel=1e-9, abs=1e-12)
    facts = on_cpu(program, "survey").document["survey"]["facts"]
    assert facts["batches"] == [16, 32], facts


def test_an_update_of_a_rest_may_be_another_training(on_cpu):
    """Three batches an epoch, two an update: whether the third one waits is not seen."""
    program = OWN_HEAD.replace("64", "48").replace("float48", "float64") + OWN["by_number"] + "print(json.dumps(seen))\n"
    assert on_cpu(program, "accumulate=4").change("accumulate")["results"] == "different_training"


def test_a_step_that_was_left_out_does_not_become_a_habit(on_cpu):
    """As of a loss that is not finite: the third batch of eight makes no update, the others do."""
    loop = LOOP.replace("optimizer.step()", "if not (x[:, 0] == 7).any(): optimizer.step()").replace(", shuffle=True", "")
    program = HEAD + MODELS["perceptron"].replace("44", "64") + "data.tensors[0][32:48, 0] = 7\n" + loop
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    one, two = json.loads(before.stdout), json.loads(after.stdout)
    assert len(one) == len(two) == 6
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-9, abs=1e-12)


def test_batch_normalisation_makes_it_another_training(on_cpu):
    program = HEAD + MODELS["convolution"].replace("nn.GroupNorm(2, 8)", "nn.BatchNorm2d(8)") + LOOP
    assert on_cpu(program, "accumulate=4").change("accumulate")["results"] == "different_training"


FROZEN = """
    class Frozen(nn.BatchNorm2d):
        def train(self, mode=True):
            return super().train(False)

"""


@pytest.mark.parametrize("made", ["Frozen(8).eval()", "nn.BatchNorm2d(8).eval()"])
def test_frozen_batch_normalisation_keeps_the_training(on_cpu, made):
    """A frozen backbone: in eval() each sample is normalised by the running averages."""
    program = HEAD + FROZEN + MODELS["convolution"].replace("nn.GroupNorm(2, 8)", made) + LOOP
    assert on_cpu(program, "accumulate=4").change("accumulate")["results"] == "same_up_to_rounding"


UNOWNED = """
    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = [nn.BatchNorm2d(8)]

        def forward(self, x):
            return self.norms[0](x)

"""


def test_batch_normalisation_that_no_model_owns_counts(on_cpu):
    program = HEAD + UNOWNED + MODELS["convolution"].replace("nn.GroupNorm(2, 8)", "Calls()") + LOOP
    assert on_cpu(program, "accumulate=4").change("accumulate")["results"] == "different_training"


MOVING = """
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(8))
            self.register_buffer("cache", torch.zeros(1))

        def forward(self, x):
            if self.cache.dtype != x.dtype:
                self.cache = self.cache.to(x.dtype)
            if self.training:
                self.%s
            return x - self.mean[:, None, None]

        def update(self, x):
            self.mean.data.mul_(0.9).add_(x.mean((0, 2, 3)).detach(), alpha=0.1)

"""


@pytest.mark.parametrize("statement, results", [("update(x)", "different_training"), ("mean.lerp_(x.mean((0, 2, 3)).detach(), 0.1)", "different_training"),
                                                ("mean = self.mean * 0.9 + x.mean((0, 2, 3)).detach() * 0.1", "different_training"),
                                                ("cache.fill_(1)", "same_up_to_rounding"), ("training", "same_up_to_rounding")])  # fmt: skip
def test_buffers_that_a_forward_pass_moves_make_it_another_training(on_cpu, statement, results):
    """A codebook's running averages: moved once a piece. What is only carried to another type is no state, and a flag is as good twice."""
    program = HEAD + MOVING % statement + MODELS["convolution"].replace("nn.GroupNorm(2, 8)", "Average()") + LOOP
    assert program.count("Average()") == 1
    outcome = on_cpu(program, "accumulate=4")
    assert outcome.change("accumulate")["results"] == results, outcome.stderr
    possible = {row["id"]: row["results"] for row in on_cpu(program, "survey").document["survey"]["possible"]}
    assert possible["accumulate"] == results


@pytest.mark.parametrize("layer, results", [("nn.InstanceNorm2d(8)", "same_up_to_rounding"),
                                            ("nn.InstanceNorm2d(8, track_running_stats=True)", "different_training"),
                                            ("nn.utils.parametrizations.spectral_norm(nn.Conv2d(8, 8, 1))", "different_training")])  # fmt: skip
def test_layers_of_torch_that_move_buffers_make_it_another_training(on_cpu, layer, results):
    """Running statistics of single instances, and the power iteration of spectral normalisation."""
    program = HEAD + MODELS["convolution"].replace("nn.GroupNorm(2, 8)", layer) + LOOP
    outcome = on_cpu(program, "accumulate=4")
    assert outcome.change("accumulate")["results"] == results, outcome.stderr


def test_a_batch_that_does_not_divide_is_refused(on_cpu):
    program = HEAD + MODELS["perceptron"] + LOOP
    entry = on_cpu(program, "accumulate=5").document["changes"][0]
    assert not entry["applied"] and "16" in entry["why_not"]


WIDE = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(TensorDataset(torch.zeros(8192, 1024)), batch_size=4096, shuffle=True)
    for epoch in range(2):
        for step, (x,) in enumerate(loader):
            x = x.cuda()
            loss = model(x).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print("done")
"""


def test_accumulation_saves_activations_and_so_does_its_patch(saves):
    before, after, entry = saves(WIDE, "accumulate=4")
    # the input and eight outputs of 16 MiB each shrink to a quarter
    assert before.allocated - after.allocated >= 8 * 12 * MIB
    assert entry["results"] == "same_up_to_rounding"
    assert {place["line"] for place in entry["places"]} >= {8, 13, 14, 15, 16}


ENDLESS = """
    import sys, torch
    from torch.utils.data import DataLoader, TensorDataset

    def batches(size):
        data = TensorDataset(torch.randn(32, 8))
        loader = iter(DataLoader(data, size, shuffle=True))
        other = DataLoader(data, size, shuffle=False)
        while True:
            try:
                yield next(loader)
            except StopIteration:
                loader = iter(
                    DataLoader(
                        data, size, shuffle=True
                    )
                )
                yield next(loader)

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    source = batches(16)
    for step in range(int(sys.argv[1])):
        x, = next(source)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print(len(x))
"""


def test_the_patch_has_each_place_that_makes_the_loader_anew(on_cpu):
    """As glow's: a trial that ends in the first epoch never sees the second place, and the patch would run out of memory in the second epoch."""
    entry = on_cpu(ENDLESS, "accumulate=2", arguments=["1"]).change("accumulate")
    assert entry["patch"].count("size // 2") == 2, entry["patch"]
    patched = on_cpu(ENDLESS, patch=entry["patch"], arguments=["5"])
    assert patched.stdout.split() == ["8"] * 10, patched.stdout


@pytest.mark.parametrize("size, written", [("4096", "size // 4"), ("2", "max(1, size // 4)")])
def test_an_evaluation_whose_loader_the_same_call_makes_has_smaller_batches_too(saves, size, written):
    """The patch sets one size for both: the trial does so, too. An evaluation in batches of 4096 would have the peak."""
    program = WIDE.replace("loader = DataLoader(TensorDataset(torch.zeros(8192, 1024)), batch_size=4096, shuffle=True)", """
    def loader_of(count, size):
        return DataLoader(TensorDataset(torch.zeros(count, 1024)), batch_size=size)
    loader, tests = loader_of(8192, 4096), loader_of(8192, %s)
""".strip() % size)
    program = program.replace('    print("done")', """        model.eval()
        with torch.no_grad():
            for step, (x,) in enumerate(tests):
                (model(x.cuda()) - x.cuda()).square().mean().item()
                if step == 3: break
        model.train()
    print("done")
""")  # fmt: skip
    before, after, entry = saves(program, "accumulate=4")
    assert before.allocated - after.allocated >= 8 * 12 * MIB
    assert "batch_size=%s)" % written in entry["patch"] and "for evaluation" in entry["how"], entry


def test_a_smaller_batch_saves_activations_and_so_does_its_patch(saves):
    before, after, entry = saves(WIDE, "batch=1024")
    assert before.allocated - after.allocated >= 8 * 12 * MIB
    assert entry["results"] == "different_training"


def test_a_smaller_batch_by_the_option_of_the_command_line(saves):
    program = WIDE.replace("    import torch\n", """    import argparse
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch-size", type=int, default=4)
    parser.add_argument("--evaluation-batch", type=int, default=7)
    options = parser.parse_args()
""", 1).replace("x = x.cuda()", "x = torch.zeros(options.batch_size, 1024, device='cuda')")  # fmt: skip
    program = program.replace("for step, (x,) in enumerate(loader)", "for step in range(2)")
    before, after, entry = saves(program, "batch=1024", patched=False, arguments=["-b", "4096"])
    assert before.allocated - after.allocated >= 8 * 12 * MIB
    assert entry["how"] == "Run the program with --batch-size 1024." and entry["arguments"] == {"--batch-size": 1024}


def test_smaller_batches_in_evaluation_leave_training_as_it_is(saves):
    """Evaluation in batches of 16384 takes more than training in batches of 64: the input and two outputs."""
    program = WIDE.replace("8192, 1024)), batch_size=4096, shuffle=True)", "16384, 1024)), batch_size=64)\n    tests = DataLoader(loader.dataset, 16384)")
    program = program.replace('    print("done")', """    model.eval()
    with torch.no_grad():
        print(sum(model(x.cuda()).square().mean().item() for (x,) in tests))
""")  # fmt: skip
    program = program.replace("range(2)", "range(1)").replace("(loader):", "(loader):\n            if step == 2: break")
    before, after, entry = saves(program, "evaluation_batch=4096")
    assert before.allocated - after.allocated >= 2 * 48 * MIB
    assert entry["results"] == "same_up_to_rounding"
    assert ["batch_size 16384 becomes 4096" in place["what"] for place in entry["places"]] == [True], entry["places"]


def test_the_patch_of_a_loader_whose_size_is_handed_on(on_cpu):
    """As makemore's InfiniteDataLoader(data, batch_size=...) hands it to the DataLoader."""
    loop = LOOP.replace("DataLoader(data, batch_size=16, shuffle=True)", "loader(batch_size=16)").replace("range(2)", "range(1)")
    loop = """
    def loader(**words):
        return DataLoader(data, shuffle=True, **words)
    """ + loop
    program = HEAD + MODELS["perceptron"].replace("44", "48") + loop
    before, after = on_cpu(program), on_cpu(program, "accumulate=4")
    patched = on_cpu(program, patch=after.change("accumulate")["patch"])
    for one, two in zip(json.loads(before.stdout), json.loads(patched.stdout)):
        assert two == pytest.approx(one, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("changes", ["accumulate=4,evaluation_batch=5", "evaluation_batch=5,accumulate=4"])
def test_evaluation_in_smaller_batches_goes_together_with_it(on_cpu, changes):
    """Training and evaluation often need as much: neither change saves anything without the other. What fed training is none of the
    second's, also where it is evaluated on afterwards."""
    program = HEAD + MODELS["perceptron"].replace("44", "64") + """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training = DataLoader(data, batch_size=16)
    others = DataLoader(data, batch_size=32)
    sizes = []
    model.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
    for epoch in range(2):
        model.train()
        for x, y in training:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        trained = set(sizes)
        model.eval()
        del sizes[:]
        with torch.no_grad():
            for loader in (others, training):
                for x, y in loader:
                    model(x)
                print(sorted(trained), sorted(set(sizes)))
                del sizes[:]
    """
    outcome = on_cpu(program, changes)
    assert outcome.stdout.splitlines()[-2:] == ["[4] [4, 5]", "[4] [4]"], outcome.stdout + outcome.stderr
    assert outcome.change("evaluation_batch")["results"] == "same_up_to_rounding"
