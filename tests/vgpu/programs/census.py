# SPDX-License-Identifier: Apache-2.0
"""Runs a program, and counts what it holds on the GPU by its own objects, found by Python's garbage collector.

    census.py PROGRAM.py

Shares nothing with the hook of Tonnage. Before each update of an optimizer, after it, and at the end, a line
`census {...}` is printed: bytes of the distinct parameters of all live modules and optimizers, of their gradients, and
of the state of all live optimizers, as numel * itemsize.
"""

import gc
import json
import runpy
import sys

import torch
from torch.optim import optimizer as optimizers


def live(kind):
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


def bytes_of(tensors):
    """Tensors that stand on the same bytes count once."""
    places = {(t.data_ptr(), t.numel() * t.itemsize) for t in tensors if t.is_cuda}
    return sum(size for _, size in places)


def census(moment):
    parameters = {id(p): p for module in live(torch.nn.Module) for p in module._parameters.values() if p is not None}
    states = []
    for optimizer in live(torch.optim.Optimizer):
        parameters.update((id(p), p) for group in optimizer.param_groups for p in group["params"])
        for values in optimizer.state.values():
            states += [value for value in values.values() if isinstance(value, torch.Tensor)]
    row = {
        "moment": moment,
        "parameters": bytes_of(parameters.values()),
        "gradients": bytes_of(p.grad for p in parameters.values() if p.grad is not None),
        "optimizer_state": bytes_of(states),
    }
    print("census " + json.dumps(row), flush=True)


optimizers.register_optimizer_step_pre_hook(lambda *_: census("before an update"))
optimizers.register_optimizer_step_post_hook(lambda *_: census("after an update"))
program = sys.argv[1]
sys.argv = [program]
names = runpy.run_path(program, run_name="__main__")
census("end")
