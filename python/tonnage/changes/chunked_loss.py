# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy in pieces: the log-softmax of one piece lives at a time, and is computed again in backward.

The logits themselves stay whole; of the three tensors of their size that forward and backward need, one goes.
"""

import ast

from . import arguments, code, wrap

_HOW = "Compute the cross-entropy in %s pieces, each checkpointed: its log-softmax lives for one piece at a time."
_HELPER = '''\
def chunked_cross_entropy(logits, target, chunks=%s):
    """The mean cross-entropy of [N, classes] logits, in pieces that backward computes again."""
    import torch.utils.checkpoint

    def piece(some, wanted):
        return torch.nn.functional.cross_entropy(some, wanted, reduction="sum")

    total = 0.0
    for some, wanted in zip(logits.chunk(chunks), target.chunk(chunks)):
        total = total + torch.utils.checkpoint.checkpoint(piece, some, wanted, use_reentrant=False)
    return total / (target != -100).sum()


'''


def places(source):
    """The calls that can be replaced."""
    return [call for call in code.calls(source, "cross_entropy") if len(call.args) == 2 and not call.keywords and
            isinstance(source.statement(call), (ast.Assign, ast.Return, ast.AugAssign))]


def edit(change, source):
    """Replaces plain calls of cross_entropy in one file."""
    pieces = change.value or "8"
    if not pieces.isdigit() or int(pieces) < 2:
        change.cannot("needs a number of pieces: chunked_loss=8")
        return
    calls = places(source)
    if not calls:
        return
    edits, helper = change.edits(source), code.free_name(source, "chunked_cross_entropy")
    for call in calls:
        edits.replace(call.func, helper)
        change.note(wrap.place_of(source, call), "cross-entropy in %s pieces" % pieces)
        change.effect()
    wrap.insert_helper(edits, (_HELPER % pieces).replace("chunked_cross_entropy", helper))
    code.need_import(edits, "torch")
    arguments.say(change, _HOW % pieces)
