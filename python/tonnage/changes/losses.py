# SPDX-License-Identifier: Apache-2.0
"""What a loss is, read from the operations behind it: a mean or a sum over the batch, what it is multiplied with, which targets it leaves out."""

import itertools
import operator

_MEAN, _SUM = 1, 2  # torch's numbers of reduction="mean" and "sum"
_IGNORED_BY_DEFAULT = -100  # of cross_entropy: mostly no target is it
_DEPTH = 8  # operations behind a loss that are looked at


def is_sum(node):
    """True when a loss is a sum over the batch: reduction="sum", or .sum() as the last operation, and not divided by how much it sums."""
    _, sums, by_size = weight(node)
    return sums and not by_size


def weight(node):
    """(share, sums, by size) of a loss: what it is multiplied with, 0.25 of `(loss / 4).backward()`, None where a tensor says it;
    whether it is a sum over the batch; and whether that is divided by the size of what it sums, which makes it a mean."""
    share, divisors, last = 1.0, [], True
    for _ in range(_DEPTH):
        name, reduction = type(node).__name__, getattr(node, "_saved_reduction", None)
        if reduction is not None or name.startswith("Sum"):
            sums = reduction in (None, _SUM)
            return share, sums, sums and not _sizes_of(node).isdisjoint(divisors)
        factor = _factor(node) if name.startswith(("Mul", "Div")) else None
        if factor is not None:
            share = share * factor if share is not None else None
            if name.startswith("Div"):
                divisors.append(round(1 / factor))
        elif name.startswith("Div"):
            return (None if last else share), False, False  # by what was summed with it: a mean with weights, or over what is not masked
        elif name.startswith("Mul"):
            share = None if last else share
        elif name.startswith(("Neg", "Add", "ToCopy", "Alias", "Clone")):
            last = False
        else:
            break
        node = node.next_functions[0][0] if node.next_functions else None
    return share, False, False


def ignored_target(node):
    """The ignore_index of a loss that is a mean over what is left, where the program has chosen one; else None."""
    for _ in range(_DEPTH):
        index = getattr(node, "_saved_ignore_index", None)
        if index is not None:
            index -= (index >> 63) << 64  # torch hands out 64 bits without a sign
            return index if index != _IGNORED_BY_DEFAULT and node._saved_reduction == _MEAN else None
        node = node.next_functions[0][0] if node is not None and node.next_functions else None
    return None


def _factor(node):
    """The number that a node multiplies with; None for a tensor of the card, or of several numbers."""
    by = getattr(node, "_saved_other", None)
    if by is None or by.device.type != "cpu" or by.dim() or not float(by):
        return None
    return 1 / float(by) if type(node).__name__.startswith("Div") else float(by)


def _sizes_of(node):
    """Of what a node sums: its rows, those times the next dimension, and so on to all of its elements."""
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    if sizes is None:
        summed = getattr(node, "_saved_self", None)
        sizes = summed.shape if summed is not None else ()
    return {size for size in itertools.accumulate((int(size) for size in sizes), operator.mul) if size > 1}
