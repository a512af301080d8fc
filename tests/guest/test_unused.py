# SPDX-License-Identifier: Apache-2.0
"""Graphs of calls, and whether a backward pass used them."""

import pickle

import pytest

FORKED = True  # ../fork_servers.py

PROGRAM = """
import torch, sys
from torch import nn
unused = sys.modules["_tonnage_guest.unused"]
net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
other = nn.Linear(512, 512).cuda()
x = torch.randn(1024, 512, device="cuda")

def found():
    return [line for file, line, training in unused.places()]

%s
"""

CASES = {
    "looked_at": ("for _ in range(2):\n  net(x).sum().backward()\n  y = net(x).detach()\nother(x)\nprint(found())", [14]),
    "used_at_last": ("y = net(x)\nother(y.detach()).sum().backward()\ny.sum().backward()\ndel y\nother(x)\nprint(found())", []),
    "used_by_grad": ("y = net(x.requires_grad_())\ntorch.autograd.grad(y.sum(), x)\ndel y\nother(x)\nprint(found())", []),
    "one_output_of_two": ("class Two(nn.Module):\n  def forward(self, x): return {'a': net(x), 'b': [other(x)]}\ntwo = Two()\nout = two(x)\n"
                          "out['b'][0].sum().backward()\ndel out\nother(x)\nprint(found())", []),
    "without_gradients": ("with torch.no_grad(): y = net(x)\ndel y\nother(x)\nprint(found())", []),
    "last_of_all": ("y = net(x)\ndel y\nprint(found())", []),
    "exception": ("def fail():\n  y = net(x)\n  raise ValueError\ntry: fail()\nexcept ValueError: print(found())", []),
    "still_there": ("y = net(x)\nother(x)\nprint(found())", []),
    # one function for both: the call around it is what makes graphs in vain
    "shared": ("def loss(net):\n  return net(x).sum()\nfor _ in range(2):\n  loss(net).backward()\n  loss(net).item()\nother(x)\nprint(found())", [16]),
    "kept_by_a_loss": ("total = 0\nfor _ in range(3): total = total + net(x).sum()\ntotal.backward()\ndel total\nother(x)\nprint(found())", []),
}

LEFT_OVER = """
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
def left():
    rows = unused.rows()
    return [row[4] for row in rows if row[2] == 0 and row[3]]
for step in range(2):
    fake = net(x)
    print(left(), end=" ")
    if %r and step == 1: continue
    other(fake.detach()).sum().backward()
    print(left(), end=" ")
    other(fake).sum().backward()
    optimizer.step()
    print(left(), end=" ")
    if step == 0: shown = other(x)
print(left())
"""


@pytest.mark.parametrize("early", [False, True])
def test_what_is_left_over_as_the_program_comes_round(virtual, wheel, early):
    """`shown`, of the step before; not what this step has made and uses later, whatever was called in the step before."""
    done = virtual(wheel, PROGRAM % (LEFT_OVER % early))
    found = "[] [] [] [26] [26]" if early else "[] [] [] [26] [26] [26] [26]"
    assert done.stdout.split("\n")[0] == found, done.stderr


@pytest.mark.parametrize("case", CASES)
def test_where_graphs_are_made_in_vain(virtual, wheel, case):
    program, lines = CASES[case]
    done = virtual(wheel, PROGRAM % program)
    assert done.stdout.split("\n")[0] == str(lines), done.stderr


def test_a_snapshot_has_its_place_and_its_times(virtual, wheel, tmp_path):
    """Not of what a backward pass used; the place only where nothing made there is used."""
    target = tmp_path / "run/peak.pickle"
    done = virtual(wheel, PROGRAM % """
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
for step in range(3):
    net(x).sum().backward()
    optimizer.step()
    y = net(x)
    other(y.detach()).sum().backward()
    del y
    y = net(x)
sys.modules["_tonnage_guest.history"].keep(%r)
""" % str(target))
    assert done.status == 0, done.stderr
    rows = [line.split("\t")[1:] for line in pickle.loads(target.read_bytes())["tonnage"].split("\n") if line.startswith("graph\t")]
    places = [(row[3].rpartition("/")[2], int(row[4])) for row in rows]
    assert len(rows) == 6 and [line for file, line in places] == [17, 20] * 3
    assert all(file.endswith(".py") for file, line in places)
    assert [int(row[2]) == 0 for row in rows] == [False] * 5 + [True]
    assert all(int(began) < int(ended) for began, ended, *_ in rows)
    assert all(int(row[1]) < int(row[2]) for row in rows[:5])
