# SPDX-License-Identifier: Apache-2.0
"""The optimizer works on the host: it has a pinned copy of the parameters there and keeps its state beside it.

Gradients are copied to the host before an update and released, new parameters are copied back. In a run on the
virtual GPU the update itself is left out: it touches no memory of the device, and its arithmetic on made-up values
would only cost time. What it would have moved is told to the virtual GPU, for the estimate of a step's time: the
gradients and parameters over the link, and seven times as much in the host's memory (Adam reads parameter, gradient and
two states, and writes all but the gradient).
"""

from . import arguments, code, wrap
from .source import Conflict

_HOW = "Let the optimizer update a copy of the parameters in pinned memory of the host; its state lives there, too."
_HELPER = '''\
def on_host(optimizer):
    """The optimizer's parameters and state live on the host; gradients go there, new parameters come back."""
    pairs = []
    for group in optimizer.param_groups:
        for index, p in enumerate(group["params"]):
            host = torch.empty(p.shape, dtype=p.dtype, pin_memory=p.is_cuda)
            host.copy_(p.detach())
            group["params"][index] = host
            pairs.append((p, host))
    update = optimizer.step

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for p, host in pairs:
            if p.grad is not None:
                host.grad = p.grad.cpu()
                p.grad = None
        update()
        with torch.no_grad():
            for p, host in pairs:
                p.copy_(host)
                host.grad = None
        return loss

    def zero_grad(set_to_none=True):
        for p, host in pairs:
            p.grad = None

    optimizer.step, optimizer.zero_grad = step.__get__(optimizer), zero_grad  # a method, as schedulers want it
    return optimizer


'''
_SET = "    optimizer.step, optimizer.zero_grad = step.__get__(optimizer), zero_grad  # a method, as schedulers want it\n"
# What holds steps back (accumulate.py), or counts them (pace.py), sees these, too.
_SET_HOOKED = '''\
    hooks = __import__("sys").modules["_tonnage_changes.hooks"]
    whole_zero_grad = zero_grad

    def zero_grad(self, set_to_none=True):
        whole_zero_grad()

    optimizer.step = hooks.hooked_step(step).__get__(optimizer)
    optimizer.zero_grad = hooks.gated(zero_grad, "skip_zero_grad").__get__(optimizer)
'''
_IN_A_TRIAL = '''\
def on_host(optimizer):
    """As the patch has it, without the host's work. That takes seconds, in which NCCL's watchdog lets go of the
    gradients that were reduced: it is waited for."""
    import sys

    parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        moved = sum(p.numel() * p.element_size() for p in parameters if p.grad is not None)
        sys.modules["_tonnage_guest.work"].left_out(moved, moved, 7 * moved)
        sys.modules["_tonnage_guest.collectives"].rest()
        for p in parameters:
            p.grad = None
        for hook in sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.values():
            hook(optimizer, (), {})
        return loss

    def zero_grad(set_to_none=True):
        for p in parameters:
            p.grad = None

    optimizer.step, optimizer.zero_grad = step.__get__(optimizer), zero_grad  # a method, as schedulers want it
    return optimizer


'''


def edit(change, source):
    """Puts the helper into a file that makes an optimizer and uses it."""
    from _tonnage_guest.state import settings

    if code.calls(source, "GradScaler", "unscale_"):
        raise Conflict("a gradient scaler looks for gradients on the device")
    made = [call for call in code.optimizers(source) if code.last(call.func) != "LBFGS"]
    if not made:
        return
    helper = code.free_name(source, "on_host")
    tried = _IN_A_TRIAL if settings.gpu == "virtual" else _HELPER
    sets = [(change.edits(source), _HELPER), (change.trial_edits(source), tried.replace(_SET, _SET_HOOKED))]
    for edits, text in sets:
        for call in made:
            edits.insert(*source.start(call), helper + "(")
            edits.insert(*source.end(call), ")")
        wrap.insert_helper(edits, text.replace("on_host", helper))
        code.need_import(edits, "torch")
    for call in made:
        change.note(wrap.place_of(source, call), "%s works on the host" % code.last(call.func))
        change.effect()
    arguments.say(change, _HOW)
