# SPDX-License-Identifier: Apache-2.0
"""What programs keep too long: losses with their graph, outputs, data sets, log-softmax, attention weights,
keys and values."""

import pytest
from conftest import MIB

LOSSES = """
    import torch
    from torch import nn

    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda()

    def validate(count):
        %s
        for batch in range(count):
            x = torch.randn(4096, 1024, device="cuda")
            outputs = []
            for layer in model:
                x = layer(x)
                outputs.append(x)
            loss = torch.stack(outputs).square().mean()
            %s
        return %s

    print(validate(4))
"""


@pytest.mark.parametrize(
    "begin, keep, give, written",
    [
        ("losses = []", "losses.append(loss)", "torch.stack(losses).mean()", "losses.append(loss.detach())"),
        ("total = 0", "total += loss", "total", "total += loss.detach()"),
        ("total = 0", "total = total + loss", "total", "total = total + loss.detach()"),
        ("total = 0", "total = total + loss * \\\n                1.0", "total", "total = total + (loss * 1.0).detach()"),
        ("losses = {}", "losses[batch] = loss", "sum(losses.values())", "losses[batch] = loss.detach()"),
    ],
)
def test_kept_losses_are_detached(saves, begin, keep, give, written):
    before, after, entry = saves(LOSSES % (begin, keep, give), "detach")
    assert before.allocated - after.allocated >= 2 * 4 * 16 * MIB  # the graphs of two batches and more
    # the inner list makes the loss, and is left alone
    assert [place["line"] for place in entry["places"]] == [15]
    assert "+        " + written in entry["patch"]


RECURRENT = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    cell, head = nn.RNNCell(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)

    def run(words):
        states, state, total = [], None, 0
        for word in words:
            state = cell(word, state)
            states.append(state)
            total = total + state.square().mean()
        return torch.stack(states), total

    for step in range(3):
        parts = []
        states, total = run(torch.randn(5, 2, 4))
        for row in states:
            parts.append(head(row).mean())
        loss = total + sum(parts)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())
"""


def test_what_a_step_keeps_for_its_own_backward_is_left_alone(on_cpu):
    before, after = on_cpu(RECURRENT), on_cpu(RECURRENT, "detach")
    assert not after.document["changes"][0]["applied"]
    assert after.stdout == before.stdout


TRAINING = """
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 4096)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    predictions = []
    for step in range(5):
        x = torch.randn(8192, 1024, device="cuda")
        logits = model(x)
        scores = logits.softmax(1)
        loss = (scores * scores).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        %s
    print(len(predictions))
"""


def test_kept_outputs_move_to_the_host(saves):
    before, after, entry = saves(TRAINING % "predictions.append(logits)", "outputs_to_host")
    assert before.allocated - after.allocated >= 3 * 128 * MIB
    assert "predictions.append(logits.detach().cpu())" in entry["patch"]


def test_kept_tuples_move_to_the_host(saves):
    before, after, entry = saves(TRAINING % "predictions.append((logits, x))", "outputs_to_host")
    assert before.allocated - after.allocated >= 3 * 128 * MIB
    assert "tuple(x.detach().cpu() for x in (logits, x))" in entry["patch"]


def test_outputs_are_released_once_the_loss_is_taken(saves):
    before, after, entry = saves(TRAINING % "predictions = predictions", "release_outputs")
    assert before.allocated - after.allocated >= 128 * MIB  # the logits: softmax keeps its own result
    assert "del logits" in entry["patch"] and "del loss" not in entry["patch"]


RESIDENT = """
    import torch
    from torch import nn

    data = torch.zeros(65536, 512).cuda()
    labels = torch.zeros(65536, dtype=torch.int64).to("cuda")
    model = nn.Linear(512, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        chosen = torch.randint(len(data), (256,), device="cuda")
        loss = nn.functional.cross_entropy(model(data[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


def test_a_data_set_stays_on_the_host(saves):
    before, after, entry = saves(RESIDENT, "data_on_host")
    assert before.allocated - after.allocated >= 125 * MIB
    assert {place["line"] for place in entry["places"]} == {4, 5}


VOCABULARY = """
    import torch
    from torch import nn

    head = nn.Linear(64, 65536, bias=False).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for step in range(3):
        words = torch.randint(65536, (2048,), device="cuda")
        loss = nn.functional.cross_entropy(head(torch.randn(2048, 64, device="cuda")), words)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


def test_cross_entropy_in_pieces(saves):
    before, after, entry = saves(VOCABULARY, "chunked_loss=8")
    assert before.allocated - after.allocated >= 0.5 * 512 * MIB  # of three tensors of 512 MiB, most of one
    assert entry["results"] == "same_up_to_rounding"


ATTENTION = """
    import torch
    from torch import nn

    qkv = nn.Linear(256, 768).cuda()
    optimizer = torch.optim.SGD(qkv.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(4, 2048, 256, device="cuda")
        q, k, v = qkv(x).view(4, 2048, 3, 4, 64).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        loss = (weights @ v).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")
"""


def test_attention_that_does_not_keep_its_weights(saves):
    before, after, entry = saves(ATTENTION, "sdpa")
    assert before.allocated - after.allocated >= 256 * MIB  # 4 x 4 x 2048 x 2048 in float32, at least once


def test_attention_gives_the_same_numbers(on_cpu):
    program = "    import torch\n    torch.manual_seed(0)\n" + ATTENTION.replace(".cuda()", ".double()").replace(
        ', device="cuda"', ", dtype=torch.float64").replace("2048", "16").replace('"done"', "loss.item()")  # fmt: skip
    before, after = on_cpu(program), on_cpu(program, "sdpa")
    after.change("sdpa")
    assert float(after.stdout) == pytest.approx(float(before.stdout), rel=1e-12)


def test_cross_entropy_in_pieces_gives_the_same_numbers(on_cpu):
    program = "    import torch\n    torch.manual_seed(0)\n" + VOCABULARY.replace(".cuda()", ".double()").replace(
        '.randn(2048, 64, device="cuda")', ".randn(2048, 64, dtype=torch.float64)").replace(
        ', device="cuda"', "").replace("65536", "50").replace('"done"', "loss.item()")  # fmt: skip
    before, after = on_cpu(program), on_cpu(program, "chunked_loss=8")
    after.change("chunked_loss")
    assert float(after.stdout) == pytest.approx(float(before.stdout), rel=1e-12)


def test_inference_with_half_the_weights(saves):
    before, after, entry = saves(
        """
        import torch
        from torch import nn

        model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda().eval()
        with torch.no_grad():
            print(model(torch.randn(16, 2048, device="cuda")).dtype)
        """,
        "half_weights=bf16",
    )
    assert after.allocated < 0.55 * before.allocated
    assert after.stdout == before.stdout  # what the model returns is float32 still


INT8 = """
    import sys
    import torch
    from torch import nn

    torch.manual_seed(0)
    device = sys.argv[1]
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(16))).eval().to(device)
    with torch.no_grad():
        print(model(torch.randn(16, 1024, device=device)).abs().sum().item())
"""


def test_linear_layers_in_one_byte(saves, on_cpu):
    """The patch gives nearly the same numbers: a weight is off by at most one part in 254 of its row's largest."""
    before, after, entry = saves(INT8, "int8_weights", arguments=["cuda"])
    layer = 4 * MIB
    # 16 MiB of weights; while a layer is used its weights twice in their own type, and the workspace of cuBLAS (8.1)
    assert after.allocated <= 16 * MIB + 2 * layer + 10 * MIB < before.allocated
    assert entry["results"] == "different_training"
    exact = on_cpu(INT8, arguments=["cpu"])
    rounded = on_cpu(INT8, arguments=["cpu"], patch=entry["patch"])
    assert 0 < abs(float(rounded.stdout) / float(exact.stdout) - 1) < 0.02


GENERATION = """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=256, intermediate_size=256, num_hidden_layers=16, num_attention_heads=4,
                         vocab_size=1000)
    model = LlamaForCausalLM(config).cuda().eval()
    prompts = torch.randint(1000, (64, 512)).cuda()
    texts = model.generate(prompts, max_new_tokens=16, do_sample=False, pad_token_id=0)
    print(texts.shape)
"""


def test_a_cache_on_the_host(saves):
    before, after, entry = saves(GENERATION, "kv_cache")
    assert before.allocated - after.allocated >= 10 * 64 * MIB  # of 16 layers of 64 MiB
    assert entry["results"] == "same"


def test_fewer_new_tokens(virtual):
    assert virtual(GENERATION, "kv_cache_limit=2").stdout == "torch.Size([64, 514])\n"


PROMPT = """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=VOCABULARY)
    model = LlamaForCausalLM(config).to(DEVICE).eval()
    tokens, cache, words = torch.randint(1000, (8, LENGTH)).to(DEVICE), None, []
    with torch.no_grad():
        for word in range(3):
            outputs = model(input_ids=tokens, past_key_values=cache, use_cache=True)
            cache = outputs.past_key_values
            tokens = %s.argmax(-1, keepdim=True)
            words.append(tokens)
    print(torch.cat(words, 1).tolist() if DEVICE == "cpu" else "done")
"""


def prompt(read, device, vocabulary=32000, length=1024):
    words = {"DEVICE": '"%s"' % device, "VOCABULARY": str(vocabulary), "LENGTH": str(length)}
    program = PROMPT % read
    for name, text in words.items():
        program = program.replace(name, text)
    return program


def test_logits_that_nobody_reads_are_not_made(saves, on_cpu):
    before, after, entry = saves(prompt("outputs.logits[:, -1]", "cuda"), "logits_to_keep")
    assert before.allocated - after.allocated >= 0.9 * 8 * 1023 * 32000 * 4
    assert entry["results"] == "same_up_to_rounding" and entry["patch"].count("logits_to_keep=1") == 1
    program = prompt("outputs.logits[:, -1]", "cpu", 1000, 16)
    assert on_cpu(program).stdout == on_cpu(program, "logits_to_keep").stdout


@pytest.mark.parametrize("read", ["outputs.logits[:, -2:].sum(1)", "outputs.logits[:, 0]", "(outputs.logits[:, -1] + outputs.logits.mean(1))",
                                  "outputs[0][:, -1]"])  # fmt: skip
def test_logits_that_are_read_are_made(on_cpu, read):
    document = on_cpu(prompt(read, "cpu", 1000, 16), "logits_to_keep").document
    assert [entry["applied"] for entry in document["changes"]] == [False]


# What a pipeline of diffusers is to the change, beside the program.
PIPELINE = {"diffusers.py": """
import torch


class Decoder(torch.nn.Module):
    use_slicing = False

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(4, 64, 1)

    def enable_slicing(self):
        self.use_slicing = True

    def decode(self, x):
        if self.use_slicing:
            return torch.cat([self.layer(part).mean(1) for part in x.split(1)])
        return self.layer(x).mean(1)


class PicturePipeline:
    def __init__(self):
        self.vae = Decoder()

    def to(self, device):
        self.vae.to(device)
        return self
"""}
PICTURES = """
    import torch
    from diffusers import PicturePipeline

    pipe = PicturePipeline()
    pipe = pipe.to("cuda")
    with torch.no_grad():
        print(tuple(pipe.vae.decode(torch.randn(8, 4, 256, 256, device="cuda")).shape))
"""


def test_pictures_are_decoded_one_at_a_time(saves, virtual):
    before, after, entry = saves(PICTURES, "vae_slicing", files=PIPELINE)
    assert before.allocated - after.allocated >= 6 * 64 * 256 * 256 * 4 and after.stdout == before.stdout
    switched = PICTURES.replace('pipe.to("cuda")', 'pipe.to("cuda")\n    pipe.vae.enable_slicing()')
    (entry,) = virtual(switched, "vae_slicing", files=PIPELINE).document["changes"]
    assert not entry["applied"]


WEIGHTS = """
    import torch
    from torch import nn
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
            self.again = nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x):
            y, _ = self.attention(x, x, x)
            z, weights = self.again(y, y, y)
            return x + self.attention(z, z, z)[0] + weights.mean()

    model = Block().cuda()
    loss = model(torch.randn(8, 512, 64, device="cuda")).square().mean()
    loss.backward()
    print(loss.item() if torch.cuda.device_count() == 0 else "done")
"""


def test_attention_weights_that_nobody_reads_are_not_made(saves, on_cpu):
    """Two calls of three throw them away: of each, scores and their softmax of 8 x 4 x 512 x 512."""
    before, after, entry = saves(WEIGHTS, "sdpa")
    assert entry["effective"] == 2 and entry["patch"].count("need_weights=False") == 2
    assert before.allocated - after.allocated > 2 * 8 * 4 * 512 * 512 * 4
    program = WEIGHTS.replace(".cuda()", "").replace('device="cuda"', 'device="cpu"').replace("512", "16").replace(
        'loss.item() if torch.cuda.device_count() == 0 else "done"', "loss.item()")  # fmt: skip
    before, after = on_cpu(program), on_cpu(program, "sdpa")
    assert float(after.stdout) == pytest.approx(float(before.stdout), rel=1e-5)
