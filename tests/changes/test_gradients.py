# SPDX-License-Identifier: Apache-2.0
"""Changes that promise the same results keep the gradients: thirteen of them on six models, on the CPU, in double precision."""

import json

import pytest

HEAD = """
    import json, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    on_cpu = torch.autograd.graph.save_on_cpu
    torch.autograd.graph.save_on_cpu = lambda pin_memory: on_cpu()  # nothing can be pinned without a card
"""
BLOCKS = """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.drop = nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(%s)

        def forward(self, x):
            return x + self.drop(self.two(torch.tanh(self.one(x))))

    model = nn.Sequential(nn.Linear(12, 8), *(Block() for _ in range(3)), nn.Linear(8, 50))
    data = TensorDataset(torch.randn(48, 12), torch.randint(50, (48,)))
"""
CONVOLUTIONS = """
    def block():
        return nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), %s, nn.ReLU())

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(*(block() for _ in range(3))), nn.Flatten(), nn.Linear(4 * 36, 50))
    data = TensorDataset(torch.randn(48, 3, 8, 8), torch.randint(50, (48,)))
"""
TEXTS = """
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).view(len(x), -1, 3, 2, 8).permute(2, 0, 3, 1, 4)
            weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
            return x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))

    class Texts(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers = nn.Embedding(30, 16), nn.ModuleList(Layer() for _ in range(3))
            self.head = nn.Linear(16, 50)

        def forward(self, tokens):
            x = self.words(tokens)
            for layer in self.layers:
                x = layer(x)
            return self.head(x.mean(1))

    model = Texts()
    data = TensorDataset(torch.randint(30, (48, 7)), torch.randint(50, (48,)))
"""
LSTM = """
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.drop = nn.LSTM(8, 8, batch_first=True), nn.Dropout(%s)

        def forward(self, x):
            return self.drop(self.cell(x)[0])

    model = nn.Sequential(nn.Embedding(30, 8), *(Layer() for _ in range(3)), nn.Flatten(), nn.Linear(56, 50))
    data = TensorDataset(torch.randint(30, (48, 7)), torch.randint(50, (48,)))
"""
# The models; of two the dropout is off, since pieces of a batch draw other masks; one has batch normalisation.
MODELS = {"perceptron": BLOCKS % "0.0", "dropout": BLOCKS % "0.3", "group_norm": CONVOLUTIONS % "nn.GroupNorm(2, 4)",
          "batch_norm": CONVOLUTIONS % "nn.BatchNorm2d(4)", "attention": TEXTS, "lstm": LSTM % "0.0"}  # fmt: skip
LOOP = """
    latest, seen, losses, evaluations = {}, [], [], []
    for name, p in model.named_parameters():
        p.register_post_accumulate_grad_hook(lambda p, name=name: latest.update({name: p.grad.abs().sum().item()}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(2):
        model.train()
        for x, y in DataLoader(data, batch_size=16):
            optimizer.zero_grad()
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            loss.backward()
            losses.append(loss)
            optimizer.step()
            seen.append([dict(latest), {n: p.abs().sum().item() for n, p in model.named_parameters()}])
        model.eval()
        total = 0
        for x, y in DataLoader(data, batch_size=16):
            total += nn.functional.cross_entropy(model(x), y)
        evaluations.append(float(total))
    print(json.dumps([seen, evaluations]))
"""
# On which models a change acts: "all", or those.
CHANGES = {"zero_grad": "all", "no_grad": "all", "detach": "all", "release_outputs": "all", "foreach": "all", "fused": "all",
           "accumulate=4": "all", "checkpoint=1": "all", "step_in_backward": "all", "offload_activations": "all",
           "offload_optimizer": "all", "chunked_loss=8": "all", "sdpa": ["attention"]}  # fmt: skip


def program_of(model):
    return HEAD + MODELS[model] + LOOP


def cases():
    return [(model, change) for model in MODELS for change, models in CHANGES.items() if models == "all" or model in models]


def expect_the_same(before, after, pieces):
    """After each update; pieces of a batch may cut evaluation, too, whose sum is then one of more terms."""
    (one, evaluated), (two, evaluated_after) = json.loads(before.stdout), json.loads(after.stdout)
    two = two[pieces - 1 :: pieces]
    assert len(one) == len(two) == 6
    for a, b in zip(one, two, strict=True):
        for of_one, of_two in zip(a, b, strict=True):
            assert of_two == pytest.approx(of_one, rel=1e-7, abs=1e-10)
    assert pieces > 1 or evaluated_after == pytest.approx(evaluated, rel=1e-7)


@pytest.mark.parametrize("model, change", cases())
def test_gradients_and_weights_are_the_same(on_cpu, unchanged_on_cpu, model, change):
    """After each of six updates, and in two evaluations; as the change does it, and by its patch."""
    name, _, value = change.partition("=")
    pieces = int(value) if name == "accumulate" else 1
    before, after = unchanged_on_cpu(program_of(model)), on_cpu(program_of(model), change)
    entry = after.change(name)
    assert entry["effective"] > 0
    if pieces > 1 and model == "batch_norm":
        assert entry["results"] == "different_training" and "normalisation" in entry["how"]
        return
    assert entry["results"] in ("same", "same_up_to_rounding")
    if pieces > 1 and model == "dropout":
        return
    expect_the_same(before, after, pieces)
    if entry["patch"]:
        expect_the_same(before, on_cpu(program_of(model), patch=entry["patch"]), pieces)
