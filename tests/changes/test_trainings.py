# SPDX-License-Identifier: Apache-2.0
"""What one training leaves for the next is let go of: the peak is that of one training, the numbers are the same, and the patch does it, too.
What fix says of such programs stands in tests/vgpu/test_trainings.py."""

import pytest
from conftest import MIB

MODEL = 64 * MIB  # of weights
HELD = 4 * MODEL  # by a training: weights, gradients, and two numbers of Adam for each weight
SCRATCH = 12 * MIB  # of Adam, for one layer of 4 MiB; a model that is made beside a training is made when that is given back
NETWORK = """
    import torch

    def network():
        return torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(16)])
"""
HEAD = NETWORK + """
    def trained(seed):
        torch.manual_seed(seed)
        model = network().cuda()
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(8, 1024, device="cuda")).sum().backward()
            optimizer.step()
        return model, optimizer
"""
KEPT = HEAD + """
    results = []
    for fold in range(3):
        model, optimizer = trained(fold)
        results.append({"fold": fold, "model": model, "optimizer": optimizer})
        del model, optimizer
    print(len(results), [sum(1 for _ in result["model"].parameters()) for result in results])
"""
UNBOUND = NETWORK + """
    for fold in range(3):
        model = network().cuda()
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(8, 1024, device="cuda")).sum().backward()
            optimizer.step()
        print(fold)
"""
CIRCLE = NETWORK + """
    import gc
    gc.disable()  # when it would look by itself is a matter of chance

    class Trainer:
        def __init__(self):
            self.itself = self
            self.model = network().cuda()
            self.optimizer = torch.optim.Adam(self.model.parameters(), foreach=False)

        def train(self):
            for _ in range(2):
                self.optimizer.zero_grad()
                self.model(torch.ones(8, 1024, device="cuda")).sum().backward()
                self.optimizer.step()

    for fold in range(3):
        Trainer().train()
        print(fold)
"""
PROGRAMS = {"release_trainings": KEPT, "unbind_trainings": UNBOUND, "collect_trainings": CIRCLE}


@pytest.mark.parametrize("change, left", [("release_trainings", 2 * HELD), ("unbind_trainings", MODEL - SCRATCH), ("collect_trainings", 2 * HELD)])
def test_the_next_training_begins_with_nothing_of_the_last(virtual, unchanged, change, left):
    """left: what the unchanged program has more at its peak than one training of it."""
    program = PROGRAMS[change]
    before, after = unchanged(program), virtual(program, change)
    assert after.change(change) and after.stdout == before.stdout
    once = unchanged(program.replace("range(3)", "range(1)"))
    assert (after.allocated, before.allocated) == (once.allocated, once.allocated + left)
    patched = virtual(program, patch=after.document["patch"])
    assert patched.stdout == before.stdout and patched.peaks == after.peaks


def test_one_training_is_left_alone(virtual):
    program = HEAD + """
    model, optimizer = trained(0)
    print(sum(1 for _ in model.parameters()))
"""
    for change in ("release_trainings", "unbind_trainings"):
        after = virtual(program, change)
        assert not any(entry["applied"] for entry in after.document["changes"]), after.document
