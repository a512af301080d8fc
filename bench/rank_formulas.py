# SPDX-License-Identifier: Apache-2.0
"""What each rank of a job holds of a small model, by arithmetic on its shapes alone: for rank_counts.py and tests.

The model is that of tests/vgpu/programs/ranks: 24 blocks of two linear layers, 500 x 1001 and back, trained by AdamW in float32. Neither PyTorch nor
Tonnage is asked. A function gives (parameters, gradients, optimizer state) of a rank in bytes, at the peak of its card.
"""

import math

BLOCKS = 24
UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS = range(4)
FLOAT, HALF = 4, 2


def block(width=1001):
    return [(width, 500), (width,), (500, width), (500,)]


SHAPES = block() * BLOCKS
EMBEDDING = (1001, 500)


def numel(shape):
    return math.prod(shape)


def rows_of(shape, rank, count):
    """Numbers of a rank's part when the first dimension is cut as torch.chunk does: the last parts may be short, or empty."""
    each = -(-shape[0] // count)
    return max(0, min(each, shape[0] - rank * each)) * numel(shape[1:])


def adamw(numbers):
    """AdamW has two numbers of state for each parameter; its count of steps is on the host."""
    return FLOAT * numbers, FLOAT * numbers, FLOAT * 2 * numbers


def replicated(rank, count):
    return adamw(sum(map(numel, SHAPES)))


def tied_replicated(rank, count):
    """An embedding that is the output's matrix, too, is one parameter."""
    return adamw(sum(map(numel, [*SHAPES, EMBEDDING])))


def flat(rank, count):
    """FSDP1: the parameters of a unit lie in one flat tensor (with use_orig_params off, not padded inside), which is cut into equal,
    padded parts. The padding counts with the tensor whose storage it is."""
    return adamw(BLOCKS * -(-sum(map(numel, block())) // count))


def tied_flat(rank, count):
    """What no unit has, the root has: the embedding."""
    return adamw(flat(rank, count)[0] // FLOAT + -(-numel(EMBEDDING) // count))


def sharded_by_rows(rank, count):
    """FSDP2 cuts the first dimension of each parameter."""
    return adamw(sum(rows_of(shape, rank, count) for shape in SHAPES))


def tied_by_rows(rank, count):
    return adamw(sum(rows_of(shape, rank, count) for shape in [*SHAPES, EMBEDDING]))


def hybrid(rank, count):
    """FSDP2 on a mesh of copies x 2: each two ranks in a row have one copy of the model."""
    return sharded_by_rows(rank % 2, 2)


def zero_redundancy(rank, count):
    """ZeroRedundancyOptimizer gives each parameter, the largest first, to the rank that has least; only the state is cut."""
    loads = [0] * count
    for size in sorted(map(numel, SHAPES), reverse=True):
        loads[loads.index(min(loads))] += size
    parameters, gradients, _ = replicated(rank, count)
    return parameters, gradients, FLOAT * 2 * loads[rank]


def _tensor_parallel(rank, tensor, data):
    """Column-wise: rows of weight and bias are cut; row-wise: columns of the weight, and each rank has the bias. What is left of a parameter is
    cut by rows over the ranks of the other dimension of the mesh, which varies slowest."""
    numbers = 0
    for index, shape in enumerate(block(1000)):  # PyTorch's plans want whole parts
        if index in (UP_WEIGHT, UP_BIAS):
            shape = (shape[0] // tensor, *shape[1:])
        elif index == DOWN_WEIGHT:
            shape = (shape[0], shape[1] // tensor)
        numbers += rows_of(shape, rank // tensor, data)
    return adamw(BLOCKS * numbers)


def tensor_parallel(rank, count):
    return _tensor_parallel(rank, count, 1)


def tensor_parallel_of_two(rank, count):
    return _tensor_parallel(rank, 2, count // 2)


def stage(rank, count):
    """Of a pipeline: each rank has as many blocks as the others."""
    return adamw(BLOCKS // count * sum(map(numel, block())))


def stage_with_ends(rank, count):
    """The first stage has an embedding besides, the last one an output of the same size."""
    ends = numel(EMBEDDING) * (rank in (0, count - 1))
    return adamw(stage(rank, count)[0] // FLOAT + ends)


def stage_of_two(rank, count):
    """Two stages, each of them cut by rows over half of the ranks. FSDP2 keeps the stage and its gradients whole until the last microbatch:
    that is the peak."""
    data = count // 2
    parameters, _, state = adamw(BLOCKS // 2 * sum(rows_of(shape, rank % data, data) for shape in block()))
    return parameters, FLOAT * BLOCKS // 2 * sum(map(numel, block())), state


LARGEST_BUCKET = 500_000_000  # DeepSpeed's default
SMALL_BUCKET = 1_000_000


def _first_bucket(bucket):
    """Numbers of the gradients that come into one bucket, before the next one has no room in it."""
    full = 0
    for shape in SHAPES:
        if full + numel(shape) > bucket:
            return full
        full += numel(shape)
    return full


def deepspeed(zero, bucket, rank, count):
    """DeepSpeed's ZeRO in float32. Stage 3 pads each parameter to whole parts, and has its part a second time, as the optimizer's own. Stages 1 and 2
    have the model and their part of a flat tensor that is padded to twice the ranks. Gradients, where the peak lies:

    * stage 3: this rank's part, from one backward pass to the next.
    * stage 2: as the update takes the reduced part over, that part and the update's own copy of it.
    * stage 1: all gradients are there when the backward pass has ended. As the first bucket of its own part has been reduced, a rank makes room for
      that part, while the gradients before and in that bucket are given back: the first rank has most then, the others have most before.
    * a bucket that holds all of them: they lie in the bucket (`communication`), of which a copy is made to reduce it.
    """
    whole = sum(map(numel, SHAPES))
    if zero == 3:
        part = sum(-(-numel(shape) // count) for shape in SHAPES)
        return FLOAT * 2 * part, FLOAT * part, FLOAT * 2 * part
    part = -(-whole // (2 * count)) * 2
    if bucket >= whole:
        gradients = 0
    elif zero == 2:
        gradients = 2 * part
    else:
        gradients = max(whole, whole - rank * part - _first_bucket(bucket) + part)
    return FLOAT * (whole + part), FLOAT * gradients, FLOAT * 2 * part


QLORA = [(512, 1024), (1024, 512)] * BLOCKS  # into, out of


def four_bits(rank, count):
    """Bytes of torchao's NF4 weights: a number in half a byte, a scale of a byte for 64 numbers, a factor of 2 bytes for 256 scales, all of which are
    sharded; a table of 16 numbers and a mean that each weight has whole."""
    numbers = sum(rows_of((wide, into), rank, count) for into, wide in QLORA)
    return numbers // 2 + numbers // 64 + HALF * numbers // (64 * 256) + HALF * (16 + 1) * len(QLORA)


def qlora(adapters, rank, count):
    """Gradients and state are the adapters' alone, all in bfloat16. Their ranks (the adapters', that is) are rows of one of the two matrices."""
    numbers = sum(rows_of(shape, rank, count) for into, wide in QLORA for shape in ((adapters, into), (wide, adapters)))
    return four_bits(rank, count) + HALF * numbers, HALF * numbers, HALF * 2 * numbers


def data_parallel(card, count):
    """nn.DataParallel: the first card has the model, its gradients and state; the others have copies for a while, which are not the program's parameters."""
    return replicated(card, count) if card == 0 else (0, 0, 0)
