# SPDX-License-Identifier: Apache-2.0
"""Elementwise work over views, broadcasts and mixed types on the card, against the same on the CPU: each result must be
known and the same."""

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, *FLOATS)
generator = torch.Generator().manual_seed(0)


def assign(x):
    x = x.clone()
    x[1, :3] = 1
    x[:, 4:] = 0
    x[2] = x[0]
    return x


def at(x):
    return torch.tensor([[3, 0, 1], [1, 2, 0], [0, 3, 2], [2, 1, 3]], device=x.device)


def like(x, kind):
    return torch.ones(6, dtype=kind, device=x.device)


OF_ANY = {
    "transpose": lambda x: x.t().contiguous(),
    "expand": lambda x: x[0].expand(3, 6).contiguous(),
    "tile": lambda x: x.tile(2, 3),
    "column": lambda x: x[:, 1].contiguous(),
    "to long": lambda x: x[:, 0].long(),
    "to int": lambda x: x.int(),
    "to float": lambda x: x[:, ::2].float(),
    "to bool": lambda x: x[:, 1:3].bool(),
    "== number": lambda x: x[:, :2] == 1,
    "> number": lambda x: x[:, :2] > 0,
    "<= broadcast": lambda x: x <= x[:1],
    "!= column": lambda x: x != x[:, :1],
    "> of another type": lambda x: x > like(x, torch.float32),
    "* broadcast": lambda x: x * x[0],
    "* mask": lambda x: x * (x[:, :1] > 0),
    "where": lambda x: torch.where(x[:, :1] > 0, x, x[:1]),
    "logical_and": lambda x: x.logical_and(x[0]),
    "logical_or": lambda x: x.logical_or(x[:, :1]),
    "stack": lambda x: torch.stack([x, x]),
    "cat": lambda x: torch.cat([x, x], 1),
    "index": lambda x: x[torch.tensor([2, -1], device=x.device)],
    "assign": assign,
    "gather": lambda x: x.gather(1, at(x)),
    "scatter": lambda x: x.clone().scatter_(1, at(x), x[:, 3:]),
    "scatter number": lambda x: x.clone().scatter_(0, at(x)[:, :1], 1),
}
OF_NUMBERS = {
    "+ column": lambda x: x + x[:, :1],
    "- row": lambda x: x - x[0],
    "+ number": lambda x: x + 1,
    "number -": lambda x: 1 - x[:, ::2],
    "* number": lambda x: x * 2,
    "negative": lambda x: -x,
    "alpha": lambda x: x.add(x, alpha=-1),
    "+ of another type": lambda x: x + like(x, torch.int64),
}
NOT_OF_MASKS = ("!= column", "> number", "* mask", "where")  # masks are compared with numbers as numbers: not followed

different, compared = [], 0
for kind in TYPES:
    host = torch.randint(-3, 4, (4, 6), generator=generator).to(kind)
    card = host.cuda()
    work = {**OF_ANY, **({} if kind is torch.bool else OF_NUMBERS)}
    for name in NOT_OF_MASKS if kind is torch.bool else ():
        work.pop(name)
    for name, function in work.items():
        compared += 1
        found, wanted = function(card).cpu(), function(host)
        if found.dtype != wanted.dtype or found.tolist() != wanted.tolist():
            different.append((name, kind))
print("compared", compared, "different", different)
