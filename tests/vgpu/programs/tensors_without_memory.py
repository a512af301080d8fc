"""Modules called with tensors that stand for no memory of the card, in between three steps of training."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, vmap

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Wrapper(torch.Tensor):
    """A subclass around nothing."""

    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, device="cuda", dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return torch.zeros(8, 64, device="cuda")


def loss(parameters, row):
    return functional_call(model, parameters, (row,)).sum()


def step():
    model(torch.ones(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
with FakeTensorMode(allow_non_fake_inputs=True):
    model(torch.ones(8, 64, device="cuda"))
step()
parameters = {name: value.detach() for name, value in model.named_parameters()}
vmap(grad(loss), in_dims=(None, 0))(parameters, torch.ones(8, 64, device="cuda"))
torch.nn.Identity()(Wrapper((8, 64)))
torch.nn.Linear(64, 64, device="meta")(torch.ones(8, 64, device="meta"))
exported = torch.export.export(model, (torch.ones(8, 64, device="cuda"),))
exported.module()(torch.ones(8, 64, device="cuda"))
step()
print("three steps")
