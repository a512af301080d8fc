"""Counts the graphs that torch.compile makes of each way to write it. Argument: the device.

Prints a line for each way: its name, how often a graph was handed over, and how many graphs there are. Nothing makes code
of them, since only Dynamo's part is counted.
"""

import sys

import torch
import torch._dynamo
import torch._inductor.compile_fx
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

DEVICE = sys.argv[1]
WAYS = []
graphs = [0]


def count(graph, inputs, *args, **kwargs):
    graphs[0] += 1
    return graph.forward


torch._inductor.compile_fx.compile_fx = count  # what torch.compile's own backend calls
compiled = dict(backend=count)


def way(function):
    WAYS.append(function)
    return function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
        self.last = nn.Linear(16, 16)

    def forward(self, x):
        return self.last(self.layers(x))


def net():
    return Net().to(DEVICE)


def batch(rows=8):
    return torch.ones(rows, 16, device=DEVICE)


def infer(callable_, times=3):
    with torch.no_grad():
        for _ in range(times):
            callable_(batch())


def train(callable_, parameters, times=3):
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for _ in range(times):
        callable_(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@way
def a_function():
    model = net()
    infer(torch.compile(lambda x: model(x).relu(), **compiled))


@way
def a_function_fullgraph():
    model = net()
    infer(torch.compile(lambda x: model(x).relu(), fullgraph=True, **compiled))


@way
def a_bound_method():
    infer(torch.compile(net().forward, fullgraph=True, **compiled))


@way
def module_compile():
    model = net()
    model.compile(fullgraph=True, **compiled)
    infer(model)


@way
def compile_of_module():
    infer(torch.compile(net(), fullgraph=True, **compiled))


@way
def compile_of_module_trained():
    model = net()
    train(torch.compile(model, **compiled), model.parameters())


@way
def module_compile_trained():
    model = net()
    model.compile(**compiled)
    train(model, model.parameters())


@way
def a_function_trained():
    model = net()
    train(torch.compile(lambda x: model(x) * 2, fullgraph=True, **compiled), model.parameters())


@way
def a_decorated_function():
    model = net()

    @torch.compile(fullgraph=True, **compiled)
    def step(x):
        return model(x).softmax(-1)

    infer(step)


@way
def a_decorated_forward():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net()

        @torch.compile(fullgraph=True, **compiled)
        def forward(self, x):
            return self.inner(x) + 1

    infer(Model())


@way
def a_compiled_function_in_an_eager_module():
    @torch.compile(fullgraph=True, **compiled)
    def activation(x, layer):
        return layer(x).relu() * 2

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = net(), nn.Linear(16, 16).to(DEVICE)

        def forward(self, x):
            return activation(self.first(x), self.second)

    model = Model()
    infer(model)
    train(model, model.parameters())


@way
def compiled_modules_in_an_eager_one():
    model = nn.Sequential(torch.compile(net(), **compiled), net(), torch.compile(net(), **compiled))
    infer(model)
    train(model, model.parameters())


@way
def a_compiled_function_in_a_compiled_one():
    model = net()
    inner = torch.compile(lambda x: model(x).relu(), **compiled)
    infer(torch.compile(lambda x: inner(x) + inner(x), **compiled))


@way
def reduce_overhead():
    model = net()
    infer(torch.compile(model, mode="reduce-overhead"))
    infer(torch.compile(model.forward, mode="reduce-overhead", fullgraph=True))


@way
def with_checkpoint():
    model = net()
    train(torch.compile(lambda x: checkpoint(model, x, use_reentrant=False), **compiled), model.parameters())


@way
def with_autocast():
    model = net()

    def step(x):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return model(x)

    train(torch.compile(step, fullgraph=True, **compiled), model.parameters())


@way
def with_a_break():
    model = net()

    def step(x):
        y = model(x)
        torch._dynamo.graph_break()
        return model(y)

    infer(torch.compile(step, **compiled))
    train(torch.compile(step, **compiled), model.parameters())


@way
def with_the_programs_own_hook():
    model = net()
    model.layers[0].register_forward_hook(lambda module, args, output: output * 2)
    infer(torch.compile(lambda x: model(x), fullgraph=True, **compiled))


@way
def with_a_forward_of_its_own():
    model = net()
    forward = model.layers[2].forward
    model.layers[2].forward = lambda x: forward(x) + 1
    infer(torch.compile(model, **compiled))


@way
def shapes_that_change():
    model = net()
    step = torch.compile(lambda x: model(x), fullgraph=True, **compiled)
    with torch.no_grad():
        for rows in (8, 4, 6, 8):
            step(batch(rows))


@way
def an_optimizer():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    step = torch.compile(optimizer.step, **compiled)
    for _ in range(3):
        model(batch()).sum().backward()
        step()
        optimizer.zero_grad()


@way
def a_whole_training_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(**compiled)
    def step(x):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step(batch())


@way
def eager_calls_in_between():
    model, other = net(), net()
    step = torch.compile(model, **compiled)
    with torch.no_grad():
        for _ in range(3):
            step(other(batch()))
    train(lambda x: step(other(x)), model.parameters())
    with torch.no_grad():
        step(other(batch()))


for each in WAYS:
    torch._dynamo.reset()
    counters.clear()
    graphs[0] = 0
    try:
        each()
    except Exception as error:
        print("way:", each.__name__, type(error).__name__, str(error).splitlines()[0])
        continue
    print("way:", each.__name__, graphs[0], counters["stats"]["unique_graphs"])
