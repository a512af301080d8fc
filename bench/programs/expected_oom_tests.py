# SPDX-License-Identifier: Apache-2.0
"""A small test suite of a training library, for pytest: one test expects that a batch does not fit."""

import pytest
import torch
import torchvision


@pytest.fixture(scope="module")
def net():
    return torchvision.models.resnet18().cuda().train()


@pytest.mark.parametrize("batch", [2, 16])
def test_a_step_gives_gradients_to_all(net, batch):
    net(torch.rand(batch, 3, 224, 224, device="cuda")).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_a_batch_too_large_is_refused(net):
    with pytest.raises(torch.OutOfMemoryError):
        net(torch.rand(4096, 3, 224, 224, device="cuda"))


def test_evaluation_keeps_nothing(net):
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        out = net.eval()(torch.rand(8, 3, 224, 224, device="cuda"))
    del out
    assert torch.cuda.memory_allocated() <= before + (1 << 20)
