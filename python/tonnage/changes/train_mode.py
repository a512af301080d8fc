# SPDX-License-Identifier: Apache-2.0
"""model.train() before the training loop: a model that is trained in eval(), as from_pretrained returns it, does not
checkpoint, although it was asked to.

Only where the program has not called eval() itself (who freezes batch normalisation so means it), and only where checkpointing
is configured: without it, train() saves nothing. Dropout and batch normalisation work otherwise in train(), so the promise is
another training where the model has one of them that acts.
"""

import weakref

from . import arguments, checkpoint, hooks
from .table import DIFFERENT

_HOW = ("Call model.train() before the training loop: the model is in eval(), as from_pretrained returns it, where its "
        "gradient checkpointing does nothing.")


def install(change):
    """Looks at each model when it is first called."""
    _TrainMode(change, 1).install()


class _TrainMode(checkpoint._Checkpoint):
    def __init__(self, change, every):
        super().__init__(change, every)
        self.met = {}  # id -> weak reference

    def install(self):
        guarded = self.change.guarded
        hooks.on_torch(watch)
        hooks.before_forward(guarded(self.called))
        hooks.on_optimizer(guarded(self.note_optimizer))

    def called(self, root, frame):
        known = self.met.get(id(root))
        if known is not None and known() is root:
            return
        self.met[id(root)] = weakref.ref(root)
        if not waits(root):
            return
        acts = alters(root)
        root.train()
        place = hooks.place(frame)
        self.change.note(place, "%s is put into train()" % type(root).__name__)
        self.change.effect()
        if acts:
            self.change.weaken(DIFFERENT)
        arguments.say(self.change, _HOW)
        self.make_patch(None, root, [], place, frame, "train()")
        self.optimizers.clear()


def watch(torch):
    """From now on it is known who calls eval()."""
    from _tonnage_guest import facts

    facts.watch_eval(torch)


def waits(root):
    """True for a model that is trained in eval() by oversight: its checkpointing is configured and does not act."""
    import torch
    from _tonnage_guest import facts

    if not torch.is_grad_enabled() or facts.eval_was_asked() or not any(p.requires_grad for p in root.parameters()):
        return False
    parts = [part for part in root.modules() if getattr(part, "gradient_checkpointing", False) is True]
    return bool(parts) and not any(part.training for part in parts)


def alters(root):
    """True when train() makes a part of the model compute something else: dropout, batch normalisation."""
    import torch

    kinds = torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm
    return any(isinstance(part, kinds) and getattr(part, "p", 1) > 0 or getattr(part, "attention_dropout", 0)
               for part in root.modules())
