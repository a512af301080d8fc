# SPDX-License-Identifier: Apache-2.0
"""Each parameter is updated as soon as its gradient is complete, which then goes: gradients never live all at once.

Wrong together with clipping of the whole gradient, gradient scalers and accumulation, where an update needs all
gradients.
"""

import ast

from . import arguments, code, wrap
from .source import Conflict

_HOW = ("Update each parameter during backward (a hook after its gradient is accumulated), so that gradients never "
        "live all at once.")
_HELPER = '''\
def step_in_backward(optimizer):
    """Each parameter is updated by an optimizer of its own as soon as its gradient is there."""
    own = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            own[p] = (type(optimizer)([{**group, "params": [p]}]), group)

    def update(p):
        one, group = own[p]
        one.param_groups[0].update({key: value for key, value in group.items() if key != "params"})
        one.step()
        p.grad = None

    for p in own:
        p.register_post_accumulate_grad_hook(update)
    idle = lambda self, closure=None: closure() if closure is not None else None
    optimizer.step = idle.__get__(optimizer)  # a method, as schedulers want it
    return optimizer


'''


def edit(change, source):
    """Puts the helper into a file that makes an optimizer and uses it."""
    for name in ("clip_grad_norm_", "clip_grad_value_", "GradScaler", "unscale_"):
        if code.calls(source, name):
            raise Conflict("%s needs all gradients at once" % name)
    edits = change.edits(source)
    made = [call for call in code.optimizers(source) if _may(source, call)]
    if not made:
        return
    helper = code.free_name(source, "step_in_backward")
    for call in made:
        line, column = source.start(call)
        edits.insert(line, column, helper + "(")
        line, column = source.end(call)
        edits.insert(line, column, ")")
        change.note(wrap.place_of(source, call), "%s updates during backward" % code.last(call.func))
        change.effect()
    wrap.insert_helper(edits, _HELPER.replace("step_in_backward", helper))
    arguments.say(change, _HOW)


def _may(source, call):
    return code.last(call.func) not in ("LBFGS", "SparseAdam") and not isinstance(source.parents.get(call), ast.Starred)
