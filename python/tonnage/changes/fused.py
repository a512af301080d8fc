# SPDX-License-Identifier: Apache-2.0
"""fused=True: update in one fused kernel (fused=True), without temporaries."""

from . import arguments, optimizer_calls

_HOW = "Make the optimizer with fused=True: one kernel updates all parameters without temporaries."


def edit(change, source):
    """Adds the argument where optimizers are made."""
    optimizer_calls.add(change, source, ("SGD", "Adam", "AdamW", "Adagrad"), "fused", "True", _HOW)


def install(change):
    """transformers has an optimizer of that name."""
    arguments.hugging_face(change, _wish)


def _wish(fields):
    name = getattr(fields.optim, "value", fields.optim)
    return {"optim": "adamw_torch_fused"} if name == "adamw_torch" else {}
