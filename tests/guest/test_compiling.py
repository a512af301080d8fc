# SPDX-License-Identifier: Apache-2.0
"""The note that a process compiles: there while a backend works, and gone afterwards, however it ends."""

import pytest

FORKED = True  # ../fork_servers.py

PROGRAM = """
import os, pathlib
import torch

note = pathlib.Path(os.environ["TONNAGE_RUN"], "guest", "%d.compiling" % os.getpid())
seen = []

def backend(graph, inputs):
    seen.append(note.exists())
    if len(seen) == 3:
        raise ValueError("a backend that fails")
    return graph.forward

def f(x):
    return x.sin() + 1

for turn in range(3):
    try:
        torch.compile(f, backend=backend)(torch.ones(3))
    except Exception as error:
        print(type(error).__name__)
    seen.append(note.exists())
    torch._dynamo.reset()
print(seen)
"""


def test_dynamo(wheel, run_with):
    result = run_with(wheel, PROGRAM)
    assert result.stdout.splitlines()[-1] == "[True, False, True, False, True, False]", (result.stdout, result.stderr)
    assert result.document["hook_error"] is None


LATE = """
import sys, traceback
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

def update():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()

update()
print("torch._dynamo" in sys.modules)
graphs = []

def backend(graph, inputs):
    graphs.append(sorted(str(node.target).partition(" of type")[0] for node in graph.graph.nodes if node.op == "call_function"))
    return graph.forward

torch.compile(model, backend=backend)(torch.ones(2, 4)).sum().backward()
torch.compile(lambda: optimizer.step(), backend=backend)()
update()
print("torch._dynamo" in sys.modules, len(graphs), graphs)

def fails(*_):
    raise KeyError("a hook of the program's")

optimizer.register_step_pre_hook(fails)
try:
    update()
except KeyError:
    print([(frame.name, frame.line) for frame in traceback.extract_tb(sys.exc_info()[2])])
"""


@pytest.mark.fresh
def test_the_compiler_is_imported_by_what_compiles(wheel, run_with):
    """And from then on all is as in torch without the hook: what is compiled, and where a traceback leads."""
    ours = run_with(wheel, LATE)
    torchs = run_with(wheel, LATE, forked=True, TONNAGE_RUN="")  # that its import is torch's own: test_boot.py
    assert ours.document["hook_error"] is None
    one, two = ours.stdout.splitlines(), torchs.stdout.splitlines()
    assert one[0] == "False" and two[0] == "True" and len(one) == 3, (ours.stderr, torchs.stderr)
    assert one[1:] == two[1:]


@pytest.mark.fresh
def test_the_compiler_is_imported_where_the_computers_memory_is_asked_for(wheel, run_with):
    text = """
    import sys, torch
    torch.optim.SGD([torch.ones(1, requires_grad=True)], 1.0).step()
    print("torch._dynamo" in sys.modules)
    """
    assert run_with(wheel, text, TONNAGE_HOST_MEMORY="1").stdout.strip() == "True"
