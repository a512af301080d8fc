# SPDX-License-Identifier: Apache-2.0
"""ZeroRedundancyOptimizer: each rank of DistributedDataParallel keeps the optimizer's state of its own part of the parameters."""

from . import code, optimizer_calls

_HOW = ("Make the optimizer through torch.distributed.optim.ZeroRedundancyOptimizer: each rank updates its part of the parameters "
        "and sends it to the others. Before a checkpoint every rank calls optimizer.consolidate_state_dict().")
_KINDS = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop")  # update each number by itself


def edit(change, source):
    """Wraps the optimizers of a file that wraps a model in DistributedDataParallel itself."""
    if not code.calls(source, "DistributedDataParallel", "DDP") or code.calls(source, "ZeroRedundancyOptimizer"):
        return
    for call in code.optimizers(source, _KINDS):
        name = code.target_of(source, call)
        if name is None or not _is_plain(call):
            continue
        if code.mentions(source.tree, name + ".state_dict") or code.mentions(source.tree, name + ".load_state_dict"):
            change.cannot("%s's state is saved or loaded: a sharded one has to be gathered first" % name)
            return
        _wrap(change, source, call)


def _is_plain(call):
    """Parameters, perhaps the learning rate, and the rest by name."""
    return len(call.args) <= 2 and not any(code.last(word.value) == "state_dict" for word in call.keywords)


def _wrap(change, source, call):
    edits, kind = change.edits(source), source.of(call.func)
    edits.replace(call.func, "torch.distributed.optim.ZeroRedundancyOptimizer")
    if len(call.args) == 2:
        edits.replace(call.args[1], "lr=" + source.of(call.args[1]))
    code.add_argument(edits, call, "optimizer_class=" + kind)
    code.need_import(edits, "torch.distributed.optim")
    optimizer_calls.done(change, source, call, "%s is sharded over the ranks" % code.last(call.func), _HOW)
