# SPDX-License-Identifier: Apache-2.0
"""Threads of people whose notebooks ran out of memory, rebuilt as cells: the verdict, and what is named.

Each is small: what matters is what holds the memory, and where. The names are those of the threads.
"""

import pytest
from conftest import MIB
from test_notebooks import cells, findings, run  # noqa: F401 (a fixture)

IMPORT = "import torch\nfrom torch import nn"
MODEL = "def make(width=2048, layers=8):\n    return nn.Sequential(*(nn.Linear(width, width) for _ in range(layers))).cuda()"

# name, sources, options, verdict, finding, words of it, the cell of the out-of-memory
THREADS = [
    # an error in a console keeps what its functions held, so that the next try has less
    ("pytorch#36874", [IMPORT, "def step(n):\n    x = torch.ones(n, 1 << 20, device='cuda')\n    y = x * 2\n    raise ValueError('shape')", "step(64)",
                       "z = torch.ones(64, 1 << 20, device='cuda')"],
     ("--keep-going", "--memory=700MiB"), "out_of_memory", "held_traceback", "sys.last_traceback", "cell 4"),
    # a cell is run again while its variable has the old model
    ("marimo#806", [IMPORT, MODEL, "model = make(4096)"], ("--cells=1-3,3", "--memory=1000MiB"), "out_of_memory", "rebound", "model still held", "cell 2"),  # where make() stands
    # the second run of a training notebook: the optimizer and the trainer of the first still stand there
    ("S2ML#5", [IMPORT, MODEL, "model = make()", "class Trainer:\n    def __init__(self, model):\n        self.model = model\ntrainer = Trainer(model)"],
     ("--cells=1-4,3",), "fits", "held_earlier_run", "trainer keeps", None),
    # the state of a video's inference grows by frame, cell after cell
    ("sam3#169", [IMPORT, "state = {'frames': []}\nnet = nn.Conv2d(3, 16, 3, padding=1).cuda()",
                  "with torch.no_grad():\n    for _ in range(4):\n        state['frames'].append(net(torch.ones(1, 3, 512, 512, device='cuda')))"],
     ("--cells=1-3,3,3",), "fits", "held_earlier_run", "state keeps", None),
    # a model of an earlier cell is still there when the next one loads its own
    ("colabtools#2001", [IMPORT, MODEL, "first = make(4096)", "second = make(4096)"], ("--memory=1000MiB",), "out_of_memory", None, None, "cell 2"),
    # each request of a demonstration keeps its picture on the card
    ("PuLID#4", [IMPORT, "gallery = []\ndef generate():\n    gallery.append(torch.ones(16, 1 << 20, device='cuda'))", "generate()"],
     ("--cells=1-3,3,3,3",), "fits", "held_earlier_run", "gallery keeps", None),
    # logits of a long text, cast to 32 bits in one request
    ("unsloth#465", [IMPORT, "hidden = torch.ones(8192, 256, device='cuda', dtype=torch.bfloat16)\nhead = torch.ones(32000, 256, device='cuda', dtype=torch.bfloat16)",
                     "logits = hidden @ head.T\nlogits.float().softmax(-1)"],
     ("--memory=2GiB",), "out_of_memory", None, None, "cell 3"),
    # evaluation keeps its outputs
    ("unsloth#2818", [IMPORT, MODEL, "model = make()", "outputs = []\nfor _ in range(64):\n    outputs.append(model(torch.ones(512, 2048, device='cuda')))"],
     ("--memory=700MiB",), "out_of_memory", None, None, "cell 4"),
    # training with a plain AdamW
    ("diffusers#11014", [IMPORT, MODEL, "model = make()\noptimizer = torch.optim.AdamW(model.parameters())",
                         "for _ in range(3):\n    model(torch.ones(8, 2048, device='cuda')).sum().backward()\n    optimizer.step()"],
     ("--memory=700MiB",), "out_of_memory", None, None, "cell 4"),
    # what a cell shows is kept, and the next one finds the card full
    ("alpaca-lora#599", [IMPORT, "big = torch.ones(64, 1 << 20, device='cuda')", "big * 2", "del big\nsecond = torch.ones(96, 1 << 20, device='cuda')"],
     ("--memory=750MiB",), "out_of_memory", "held_output", "Out[3]", "cell 4"),
]  # fmt: skip


@pytest.mark.parametrize("sources, options, verdict, finding, words, at", [row[1:] for row in THREADS], ids=[row[0] for row in THREADS])
def test_thread(run, sources, options, verdict, finding, words, at):  # noqa: F811
    done = run(sources, *options)
    assert done.verdict == verdict, done.explain()
    if at is not None:
        assert done.report["out_of_memory"]["at"]["file"] == at, done.explain()
        if finding is not None:
            assert done.report["findings"][0]["id"] == finding, done.explain()
    if finding is not None:
        [row] = findings(done, finding)
        assert words in row["what"] and row["bytes"] >= 16 * MIB, done.explain()
    assert all(region["left_bytes"] is not None for region in cells(done).values())
