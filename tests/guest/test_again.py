# SPDX-License-Identifier: Apache-2.0
"""A trial reads a data set once for each size of batch."""

import pytest

FORKED = True  # ../fork_servers.py

PROGRAM = """
    import random, torch, numpy
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        read = 0
        def __len__(self): return 10
        def __getitem__(self, index):
            Pictures.read += 1
            return {item}
    def through(**wishes):
        return [batch for batch in DataLoader(Pictures(), **wishes)]
    {rest}
"""
TENSORS = "torch.full((3,), float(index)), index, {'name': 'a', 'mask': torch.ones(2)}"
TRIAL = {"TONNAGE_TRIAL": "1", "TONNAGE_LAST_NEWS": "1,0"}


def run(run_with, wheel, item, rest, **environment):
    program = PROGRAM.format(item=item, rest=rest)
    done = run_with(wheel, program, **environment)
    assert done.status == 0 and not done.document["hook_error"], done.stderr
    assert all(sensor["state"] != "lost" for sensor in done.document["sensors"]), done.document["sensors"]
    return done.stdout.split()


@pytest.mark.parametrize("environment, found", [(TRIAL, "6 [4, 4, 2] 1.0 a"), ({}, "10 [4, 4, 2] 5.0 a"), ({"TONNAGE_TRIAL": "1"}, "10 [4, 4, 2] 5.0 a"),
                                                    ({**TRIAL, "TONNAGE_LAST_NEWS": "later"}, "6 [4, 4, 2] 1.0 a")])
def test_batches_behind_the_first(run_with, wheel, environment, found):
    """Copies: what the program does to one is not done to the next. Another size is read again."""
    rest = ("data = Pictures(); found = list(DataLoader(data, batch_size=4)); found[0][0].zero_();"
            " print(Pictures.read, [len(b[0]) for b in found], found[1][0][1].tolist()[0], found[1][2]['name'][0])")
    assert " ".join(run(run_with, wheel, TENSORS, rest, **environment)) == found


@pytest.mark.parametrize("item, reads", [
    (TENSORS, 4),
    ("torch.rand(3)", 8),
    ("torch.full((3,), random.random())", 8),
    ("torch.full((3,), float(numpy.random.rand()))", 8),
    ("torch.ones(3).to_sparse()", 8),
])
def test_what_is_read_again(run_with, wheel, item, reads):
    """What draws random numbers that the program shares; what is not made of tensors of the CPU."""
    rest = "list(DataLoader(Pictures(), batch_size=4, drop_last=True, collate_fn=list)); print(Pictures.read)"
    rest = rest.replace("Pictures()", "made").replace("list(Data", "made = Pictures(); list(Data", 1)
    assert run(run_with, wheel, item, rest, **TRIAL) == [str(reads)]


def test_a_worker_draws_for_itself(run_with, wheel):
    rest = ("import torch.utils.data as of\n"
            "    def told(samples): return torch.tensor([Pictures.read])\n"
            "    made = Pictures()\n"
            "    print(*[int(b) for b in DataLoader(made, batch_size=2, num_workers=1, collate_fn=told)])")
    assert run(run_with, wheel, "torch.rand(3)", rest, **TRIAL) == ["2"] * 5


def test_another_data_set(run_with, wheel):
    rest = "one, two = Pictures(), Pictures(); list(DataLoader(one, batch_size=5)); list(DataLoader(two, batch_size=5)); print(Pictures.read)"
    assert run(run_with, wheel, TENSORS, rest, **TRIAL) == ["10"]


def test_a_data_set_that_fails_is_alone_in_its_traceback(run_with, wheel):
    program = PROGRAM.format(item="[][index]", rest="through(batch_size=2)")
    done = run_with(wheel, program, **TRIAL)
    assert done.status == 1 and "IndexError" in done.stderr and "_tonnage" not in done.stderr
