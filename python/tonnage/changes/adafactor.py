# SPDX-License-Identifier: Apache-2.0
"""torch.optim.Adafactor instead of Adam: rows and columns of the second moment, and no first one."""

from . import arguments, code, optimizer_calls

_HOW = ("Use torch.optim.Adafactor: its state is a row and a column for each matrix. The learning rate wants to be "
        "found again.")


def edit(change, source):
    """Replaces Adam and AdamW."""
    for call in code.optimizers(source, ("Adam", "AdamW")):
        optimizer_calls.replace(change, source, call, "torch.optim.Adafactor", ("lr", "weight_decay"), _HOW)
        code.need_import(change.edits(source), "torch")


def install(change):
    """transformers has its own; torch has one since 2.5."""
    arguments.hugging_face(change, {"optim": "adafactor"})
    from . import hooks

    hooks.on_torch(change.guarded(lambda torch: _look(change, torch)))


def _look(change, torch):
    if not hasattr(torch.optim, "Adafactor"):
        change.cannot("torch %s has no Adafactor" % torch.__version__)
