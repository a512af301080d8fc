# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps for backward waits in pinned memory of the host."""

from . import arguments, hooks, wrap

_CONTEXT = "torch.autograd.graph.save_on_cpu(pin_memory=True)"
_HOW = "Run the forward pass under `with %s:`; what it keeps is copied to the host and back." % _CONTEXT


def edit(change, source):
    """Wraps the steps of one file."""
    wrap.forward(change, source, "with %s:" % _CONTEXT, "keep what they save on the host", _HOW)


def install(change):
    """Under a trainer: each training call of a module that no other module called."""

    def called(module, frame):
        import torch

        if not module.training or not torch.is_grad_enabled() or arguments.is_managed(frame) is None:
            return
        context = torch.autograd.graph.save_on_cpu(pin_memory=True)
        handle = module.register_forward_hook(lambda *args: _leave(context, handle), always_call=True)
        context.__enter__()
        change.note(hooks.place(frame), "%s keeps what it saves on the host" % type(module).__name__)
        arguments.say(change, _HOW + " Under a trainer: in the model's forward().")
        change.effect()

    hooks.before_forward(change.guarded(called))


def _leave(context, handle):
    handle.remove()
    context.__exit__(None, None, None)
