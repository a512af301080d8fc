# SPDX-License-Identifier: Apache-2.0
"""Attention that is written out by hand becomes scaled_dot_product_attention: the same numbers and gradients, fewer bytes; what does more
with its scores or weights is left alone."""

import pytest
from conftest import MIB

MODULE = """
    import math
    import torch
    from torch import einsum, nn
    from torch.nn import functional as F

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 0.25
            self.temperature = 4.0
            self.key, self.query, self.value = (nn.Linear(32, 32, bias=False) for _ in range(3))
            self.register_buffer("tril", torch.tril(torch.ones(12, 12)))
            self.dropout = nn.Dropout(RATE)
            self.softmax = nn.Softmax(dim=-1)
            self.bias = nn.Parameter(torch.randn(12, 12))

        def forward(self, x, mask=None):
            B, T, C = x.shape
%s

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    model = Attention()
    x = torch.randn(3, 12, 32, requires_grad=True)
    for turn in range(3):
        model.train(turn < 2)
        out = model(x, model.tril if turn else None)
        out.square().sum().backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    print(out.square().sum().item(), x.grad.norm().item(), sum(g.norm().item() for g in grads))
"""
THREE = "q, k, v = self.query(x), self.key(x), self.value(x)\n"
FOUR = "q, k, v = (layer(x).view(B, T, 4, 8).transpose(1, 2) for layer in (self.query, self.key, self.value))\n"
LONG = "q, k, v = (layer(x).view(B, T, 4, 8) for layer in (self.query, self.key, self.value))\n"
JOIN = ".transpose(1, 2).reshape(B, T, C)\n"
FORMS = {
    "a head of nanoGPT's forerunner": THREE + """
wei = q @ k.transpose(-2,-1) * k.shape[-1]**-0.5
wei = wei.masked_fill(self.tril[:T, :T] == 0, float('-inf')) # (B, T, T)
wei = F.softmax(wei, dim=-1)
wei = self.dropout(wei)
return wei @ v
""",
    "minGPT": FOUR + """
att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
att = att.masked_fill(self.tril[None, None, :T, :T] == 0, float('-inf'))
att = F.softmax(att, dim=-1)
att = self.dropout(att)
y = att @ v
return y""" + JOIN,
    "timm": FOUR + """
attn = (q @ k.transpose(-2, -1)) * self.scale
attn = attn.softmax(dim=-1)
attn = self.dropout(attn)
return (attn @ v)""" + JOIN,
    "the annotated transformer": FOUR + """
scores = torch.matmul(q / self.temperature, k.transpose(2, 3))
if mask is not None:
    scores = scores.masked_fill(mask == 0, -1e9)
weights = self.dropout(F.softmax(scores, dim=-1))
return torch.matmul(weights, v)""" + JOIN,
    "vit-pytorch": FOUR + """
dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
if mask is not None:
    mask = mask.bool()
    dots.masked_fill_(~mask, -torch.finfo(q.dtype).max)
attn = self.softmax(dots)
out = torch.matmul(attn, v)
return out""" + JOIN,
    "einsum": FOUR + """
sim = einsum('b h i d, b h j d -> b h i j', q, k) * self.scale
attn = sim.softmax(dim = -1)
out = einsum('b h i j, b h j d -> b h i d', attn, v)
return out""" + JOIN,
    "Informer": LONG + """
scores = torch.einsum("blhe,bshe->bhls", q, k)
if mask is not None:
    scores.masked_fill_(mask == 0, -math.inf)
A = self.dropout(torch.softmax(self.scale * scores, dim=-1))
V = torch.einsum("bhls,bshd->blhd", A, v)
return V.reshape(B, T, C)
""",
    "SAGAN": THREE + """
energy = torch.bmm(q, k.permute(0, 2, 1))
attention = self.softmax(energy)
out = torch.bmm(v.permute(0, 2, 1), attention.permute(0, 2, 1))
return out.permute(0, 2, 1)
""",
    "BERT": FOUR + """
scores = torch.matmul(q, k.transpose(-1, -2))
scores = scores / math.sqrt(8)
if mask is not None:
    scores = scores + (1 - mask) * -10000.0
probs = nn.Softmax(dim=-1)(scores)
probs = self.dropout(probs)
context = torch.matmul(probs, v)
return context""" + JOIN,
    "a bias that is trained": FOUR + """
attn = q @ k.transpose(-2, -1)
attn *= self.scale
attn += self.bias
attn = torch.softmax(attn, 3)
return (F.dropout(attn, self.dropout.p, self.training) @ v)""" + JOIN,
    "Llama": FOUR + """
scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(8)
if mask is not None:
    scores = scores + mask
scores = F.softmax(scores.float(), dim=-1).type_as(q)
output = torch.matmul(scores, v)
return output""" + JOIN,
    "GPT-NeoX": FOUR + """
scores = torch.matmul(q, k.transpose(-1, -2)) * self.scale
probs = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
return torch.matmul(self.dropout(probs), v)""" + JOIN,
    "in one statement": FOUR + """
return (F.softmax(q @ k.transpose(-2, -1) / self.temperature, -1) @ v)""" + JOIN,
}  # fmt: skip


IN_32_BITS = ("Llama", "GPT-NeoX")


def program(body, rate="0.0"):
    indented = "\n".join("            " + line if line else "" for line in body.splitlines())
    return (MODULE % indented).replace("RATE", rate)


def figures(run):
    return [float(word) for word in run.stdout.split()]


@pytest.mark.parametrize("form", list(FORMS))
def test_results_and_gradients_are_the_same(on_cpu, form):
    before, after = on_cpu(program(FORMS[form])), on_cpu(program(FORMS[form]), "sdpa")
    entry = after.change("sdpa")
    assert entry["applied"] and entry["effective"] == 1, entry
    assert entry["patch"].count("scaled_dot_product_attention(") == 1
    assert max(len(line) for line in entry["patch"].splitlines() if line.startswith("+")) <= 125
    by_hand = on_cpu(program(FORMS[form]), patch=entry["patch"])
    near = 1e-6 if form in IN_32_BITS else 1e-9
    assert figures(after) == pytest.approx(figures(before), rel=near) and len(figures(before)) == 3
    assert by_hand.stdout == after.stdout


OTHER = {
    "weights that are returned": FOUR + "att = F.softmax(q @ k.transpose(-2, -1), dim=-1)\nreturn (att @ v)" + JOIN.strip() + " + 0 * att.sum()\n",
    "weights that are kept": FOUR + "att = F.softmax(q @ k.transpose(-2, -1), dim=-1)\nself.kept = att\nreturn (att @ v)" + JOIN,
    "scores that are printed": FOUR + "s = q @ k.transpose(-2, -1)\nfirst = s[0]\natt = F.softmax(s, dim=-1)\nreturn (att @ v)" + JOIN,
    "scores that are read later": FOUR + "s = q @ k.transpose(-2, -1)\natt = F.softmax(s, dim=-1)\ny = (att @ v)" + JOIN + "return y + s.mean()\n",
    "scores that are read beside": FOUR + "s = q @ k.transpose(-2, -1)\nreturn (F.softmax(s, dim=-1) @ v)" + JOIN.strip() + " + s.mean()\n",
    "weights that may be bound again": FOUR + "att = F.softmax(q @ k.transpose(-2, -1), dim=-1)\ny = (att @ v)" + JOIN
                                       + "if mask is None:\n    att = y\nreturn y + att.mean()\n",
    "another dimension": FOUR + "att = F.softmax(q @ k.transpose(-2, -1), dim=-2)\nreturn (att @ v)" + JOIN,
    "scaled behind a bias": FOUR + "s = q @ k.transpose(-2, -1) + self.bias\natt = F.softmax(s * 2, dim=-1)\nreturn (att @ v)" + JOIN,
    "keys that are bound again": FOUR + "s = q @ k.transpose(-2, -1)\nk = v * 2\natt = F.softmax(s, dim=-1)\nreturn (att @ v + k)" + JOIN,
    "a scale that is trained": FOUR + "att = F.softmax(q @ k.transpose(-2, -1) * self.bias, dim=-1)\nreturn (att @ v)" + JOIN,
    "a class of its own, no attention": THREE + "return F.softmax(q, dim=-1) * v\n",
    "values on the wrong side": FOUR + "att = F.softmax(q @ k.transpose(-2, -1), dim=-1)\nreturn (v.transpose(-2, -1) @ att).transpose(-2, -1)" + JOIN,
    "the function is there": FOUR + "if hasattr(F, 'scaled_dot_product_attention'):\n    y = F.scaled_dot_product_attention(q, k, v)\nelse:\n"
                                    "    att = F.softmax(q @ k.transpose(-2, -1), dim=-1)\n    y = att @ v\nreturn y" + JOIN,
}  # fmt: skip


@pytest.mark.parametrize("form", list(OTHER))
def test_what_does_more_with_its_weights_is_left_alone(on_cpu, form):
    entry = on_cpu(program(OTHER[form]), "sdpa").document["changes"][0]
    assert not entry["applied"], entry["patch"]


def test_dropout_is_that_of_the_module_and_is_said(on_cpu):
    """It acts in training and not in evaluation. Here the function draws as the module does; a kernel of the card draws other elements."""
    run, plain, without = (on_cpu(program(FORMS["minGPT"], rate=rate), change) for rate, change in (("0.5", "sdpa"), ("0.5", None), ("0.0", None)))
    assert figures(run) == pytest.approx(figures(plain), rel=1e-9)
    assert figures(run)[0] == pytest.approx(figures(without)[0], rel=1e-9)  # evaluated
    assert figures(run)[1] != pytest.approx(figures(without)[1], rel=1e-3)
    assert "other elements" in run.change("sdpa")["how"]


@pytest.mark.parametrize("form, heads", [("a head of nanoGPT's forerunner", 1), ("minGPT", 4), ("Informer", 4), ("SAGAN", 1)])
def test_scores_are_not_kept(saves, form, heads):
    """Of three dimensions, too: a kernel takes four."""
    text = program(FORMS[form]).replace("torch.float64", "torch.float32").replace("T, 4, 8", "T, 4, 64").replace(
        "12, 12", "1024, 1024").replace("(32, 32", "(256, 256").replace("3, 12, 32", "8, 1024, 256").replace(
        "model = Attention()", 'torch.set_default_device("cuda"); model = Attention()').replace("math.sqrt(8)", "8.0")  # fmt: skip
    before, after, entry = saves(text, "sdpa")
    assert before.allocated - after.allocated >= 8 * heads * 1024 * 1024 * 4
