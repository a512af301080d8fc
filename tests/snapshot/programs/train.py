# SPDX-License-Identifier: Apache-2.0
"""A small training program that notes what it holds: `python train.py FOLDER backward|forward`. It ends in an
out-of-memory behind its last backward, when all gradients are there, or behind its last forward.
"""

import inspect
import json
import pathlib
import sys

import torch

FOLDER = pathlib.Path(sys.argv[1])
LAYERS, WIDTH, BATCH = 7, 512, 4096


def line_here():
    return inspect.currentframe().f_back.f_lineno


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Parameter(torch.empty(WIDTH, 4 * WIDTH))
        self.down = torch.nn.Parameter(torch.empty(4 * WIDTH, WIDTH))

    def forward(self, x):
        lines["up"] = line_here() + 1
        hidden = (x @ self.up).view(-1, 4 * WIDTH).sin()
        lines["down"] = line_here() + 1
        return hidden @ self.down


lines = {}


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def main():
    model = torch.nn.Sequential(*[Layer() for _ in range(LAYERS)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        batch = torch.zeros(BATCH, WIDTH, device="cuda")
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    states = [value for state in optimizer.state.values() for value in state.values() if value.is_cuda]
    weight = WIDTH * 4 * WIDTH * 4
    books = {
        "reserved_peak": torch.cuda.max_memory_reserved(), "parameters": bytes_of(model.parameters()),
        "optimizer_state": bytes_of(states), "inputs": bytes_of([batch]), "layers": LAYERS,
        "line_of_layer": lines["up"], "bytes_of_layer": 2 * BATCH * 4 * WIDTH * 4,
        "gradients": {lines["up"]: LAYERS * weight, lines["down"]: LAYERS * weight},
    }
    (FOLDER / "books.json").write_text(json.dumps(books))
    loss = model(batch).sum()
    if sys.argv[2] == "backward":
        loss.backward()
    torch.empty(1 << 42, device="cuda")


if __name__ == "__main__":
    main()
