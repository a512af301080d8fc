# SPDX-License-Identifier: Apache-2.0
"""Losses that compare the samples of a batch with each other, seen in their autograd graph.

A contrastive loss multiplies the batch with itself, a decorrelating one sums over it before something that is not linear. Such a
loss of two halves is not the loss of the whole, whatever it is divided by: accumulation is another training. What a graph shows is
each product of two things that were both computed, none of them a parameter; pace.py writes how large those near the loss are, and
src/search/fix_same.c sees which of their sides shrink with the batch.
"""

_MOST_NODES = 2000
_MOST_PRODUCTS = 16
_PASSED = ("TBackward", "Transpose", "Permute", "View", "UnsafeView", "Reshape", "Expand", "Squeeze", "Unsqueeze", "Clone",
           "ToCopy", "Alias")  # a parameter stays one through these
_PAIRED = ("Sub", "Mul", "Div", "Add")


def products(loss):
    """[[rows, summed, columns]] of the products in the graph of a loss, the nearest to it first."""
    found, waiting, seen = [], [loss.grad_fn], {loss.grad_fn}
    for node in waiting:
        if len(found) == _MOST_PRODUCTS:
            break
        row = _product(node)
        if row is not None and min(row[0], row[2]) > 1:
            found.append(row)
        for other, _ in node.next_functions:
            if other is not None and other not in seen and len(waiting) < _MOST_NODES:
                seen.add(other)
                waiting.append(other)
    return found


def _product(node):
    name = type(node).__name__
    if name.startswith("MmBackward"):
        rows, summed = node._saved_self_sym_sizes
        return _of_computed(node, [rows, summed, node._saved_mat2_sym_sizes[1]])
    if name.startswith("BmmBackward"):  # of batches of one, as einsum makes
        (count, rows, columns), summed = _made(node), _summed(node)
        return _of_computed(node, [rows, summed, columns]) if count == 1 else None
    if name.startswith(("CdistBackward", "EuclideanDistBackward")):
        shape = _made(node)
        return [shape[-2], 1, shape[-1]] if len(shape) == 2 or shape[:-2] == [1] * (len(shape) - 2) else None
    return _pairs(node) if name.startswith(_PAIRED) else None


def _summed(node):
    """What a product of matrices sums away, by the shape of an operand with a gradient. What the node has saved is not looked at:
    under checkpointing that would compute a block again, and hold all of it."""
    (left, number), (right, other) = node.next_functions
    return _made(left, number)[-1] if left is not None else _made(right, other)[-2]


def _of_computed(node, row):
    return None if any(_is_parameter(other) for other, _ in node.next_functions) else [int(side) for side in row]


def _is_parameter(node):
    while node is not None:
        name = type(node).__name__
        if name == "AccumulateGrad":
            return True
        if not name.startswith(_PASSED) or not node.next_functions:
            return False
        node = node.next_functions[0][0]
    return False


def _made(node, number=0):
    """The shape of what a node's operation made."""
    return list(node._input_metadata[number].shape)


def _pairs(node):
    """`a[:, None] - b[None]`: each with each."""
    shapes = [_made(other, number) for other, number in node.next_functions if other is not None]
    made = _made(node)
    if len(made) < 2 or len(shapes) != 2 or any(len(shape) != len(made) for shape in shapes):
        return None
    one, two = shapes
    crossed = (one[1] == two[0] == 1 and one[0] == made[0]) or (one[0] == two[1] == 1 and two[0] == made[0])
    return [made[0], 1, made[1]] if crossed else None
