# SPDX-License-Identifier: Apache-2.0
"""bitsandbytes' Adam with a state of 8 bits in the place of torch's.

Where bitsandbytes is not installed, an optimizer with its documented sizes stands in for the trial, and that is
said: two bytes of state an element for tensors of 4096 elements and more, 32 bits otherwise; for each moment one
float32 scale a block of 256; two tables of 256 float32 for each device (bitsandbytes' Optimizer2State, blockwise).
"""

import importlib
import importlib.machinery
import sys

from . import arguments, code, optimizer_calls

_HOW = "Use bitsandbytes.optim.%s: two bytes of state a parameter in the place of eight."
_SIZES = "bitsandbytes is not installed here: the trial used the sizes that it documents."
_SMALL = 4096
_BLOCK = 256


def edit(change, source):
    """Replaces Adam and AdamW."""
    for call in code.optimizers(source, ("Adam", "AdamW")):
        kind = code.last(call.func) + "8bit"
        keep = ("lr", "betas", "eps", "weight_decay")
        optimizer_calls.replace(change, source, call, "bitsandbytes.optim." + kind, keep, _HOW % kind)
        code.need_import(change.edits(source), "bitsandbytes")


def install(change):
    """A stand-in where bitsandbytes is missing."""
    if importlib.machinery.PathFinder.find_spec("bitsandbytes") is None:
        sys.meta_path.append(_StandIn())
        arguments.say(change, _SIZES)


class _StandIn:
    """Finder and loader of a package `bitsandbytes` that holds two optimizers."""

    def find_spec(self, name, path=None, target=None):
        """The package and its module `optim`."""
        if name in ("bitsandbytes", "bitsandbytes.optim"):
            return importlib.machinery.ModuleSpec(name, self, is_package=name == "bitsandbytes")
        return None

    def create_module(self, spec):
        """Part of the loader protocol."""

    def exec_module(self, module):
        """Fills them."""
        if module.__name__ == "bitsandbytes":
            module.optim = importlib.import_module("bitsandbytes.optim")
        else:
            for name in ("Adam8bit", "AdamW8bit"):
                setattr(module, name, _make(name))


def _make(name):
    import torch

    tables = {}

    class Sizes(torch.optim.Optimizer):
        """Holds the state; no arithmetic, since no kernel runs in a trial."""

        def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **more):
            super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

        @torch.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None and not self.state[parameter]:
                        self.state[parameter] = _state(parameter)
            return loss

    def _state(parameter):
        count = parameter.numel()
        if count < _SMALL:
            return {key: torch.zeros_like(parameter, dtype=torch.float32) for key in ("state1", "state2")}
        if parameter.device not in tables:
            tables[parameter.device] = [torch.zeros(256, device=parameter.device) for _ in range(2)]
        made = {key: torch.zeros_like(parameter, dtype=torch.uint8) for key in ("state1", "state2")}
        for key, table in zip(("qmap1", "qmap2"), tables[parameter.device]):
            made[key] = table
        for key in ("absmax1", "absmax2"):
            made[key] = torch.zeros(-(-count // _BLOCK), dtype=torch.float32, device=parameter.device)
        return made

    Sizes.__name__ = Sizes.__qualname__ = name
    return Sizes
