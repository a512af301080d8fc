# SPDX-License-Identifier: Apache-2.0
"""What a program draws without a seed of its own is the same in each run on a virtual GPU, and only there."""

import sys

DRAWS = """
    import random
    print(random.random(), random.randrange(10**6))
    """


def test_unseeded_draws_are_the_same_twice(run_with):
    first, second = (run_with(sys.executable, DRAWS, TONNAGE_GPU="virtual").stdout for _ in range(2))
    assert first == second != ""


def test_a_real_gpu_leaves_them_alone(run_with):
    first, second = (run_with(sys.executable, DRAWS, TONNAGE_GPU="real").stdout for _ in range(2))
    assert first != second


def test_a_seed_of_the_programs_own_counts(run_with):
    seeded = DRAWS.replace("import random", "import random; random.seed(7)")
    inside = run_with(sys.executable, seeded, TONNAGE_GPU="virtual").stdout
    assert inside == run_with(sys.executable, seeded, TONNAGE_RUN="").stdout


def test_numpys_are_too(run_with, wheel):
    program = "import numpy; print(numpy.random.rand(3), numpy.random.permutation(9))"
    first, second = (run_with(wheel, ["-c", program], TONNAGE_GPU="virtual").stdout for _ in range(2))
    assert first == second != ""


def test_generators_of_numpy_without_a_seed_are_too(run_with, wheel):
    """Two of one program draw different numbers, and a seed of the program's own counts."""
    program = """import numpy
for made in (numpy.random.RandomState(%s), numpy.random.RandomState(%s), numpy.random.Generator(numpy.random.PCG64(%s))): print(made.bytes(8))
"""
    first, second = (run_with(wheel, ["-c", program % ("", "", "")], TONNAGE_GPU="virtual").stdout for _ in range(2))
    assert first == second and len(set(first.splitlines())) == 3
    seeded = program % (3, 4, 5)
    assert run_with(wheel, ["-c", seeded], TONNAGE_GPU="virtual").stdout == run_with(wheel, ["-c", seeded], TONNAGE_RUN="").stdout


def test_torchs_are_too(run_with, started, wheel):
    """Of the CPU: those of cards have the same seed by themselves. A seed of the program's own counts. Two starts of Python: programs/start.py
    is started by itself, and the other program's start is its server's."""
    draw = "print([torch.initial_seed(), torch.rand(3), torch.randperm(9)])"
    program = f"import torch; {draw}; torch.manual_seed(7); {draw}"
    drawn, seeded = run_with(wheel, ["-c", program], forked=True).stdout.splitlines()
    alone = run_with(wheel, ["-c", program], forked=True, TONNAGE_RUN="").stdout.splitlines()
    assert drawn == started[0]["drawn"] and seeded == alone[1]


def test_ranks_draw_different_numbers(run_with):
    first, second, again = (run_with(sys.executable, DRAWS, TONNAGE_GPU="virtual", RANK=rank).stdout for rank in "010")
    assert first == again != second


def test_workers_that_count_together_take_turns(run_with, wheel):
    """A number that several workers count up makes other batches in each run, so one process counts. Other loaders have their workers, and one
    of a single worker, too: it counts alone."""
    program = """
import functools, multiprocessing, os
from torch.utils.data import DataLoader

class Collator:
    def __init__(self):
        self.seed = multiprocessing.Value("i", -1)

    def __call__(self, batch):
        with self.seed.get_lock():
            self.seed.value += 1
            return self.seed.value, os.getpid() == own

own = os.getpid()
plain = lambda batch: (batch[0], os.getpid() == own)
held = [functools.partial(lambda collate, batch: collate(batch), Collator())][0]
for workers, collate in ((2, Collator()), (2, held), (2, Collator().__call__), (2, plain), (1, Collator())):
    print(list(DataLoader(range(6), batch_size=2, num_workers=workers, collate_fn=collate)))
"""
    lines = run_with(wheel, ["-c", program], forked=True).stdout.splitlines()
    assert lines[:3] == ["[(0, True), (1, True), (2, True)]"] * 3
    assert lines[3:] == ["[(0, False), (2, False), (4, False)]", "[(0, False), (1, False), (2, False)]"]
