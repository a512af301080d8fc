# SPDX-License-Identifier: Apache-2.0
"""The note that a process compiles: there while a backend works, and gone afterwards, however it ends."""

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
