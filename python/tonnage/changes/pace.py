# SPDX-License-Identifier: Apache-2.0
"""What each update of a program was made of: samples and tokens at the model, backward passes, how much of its loss each of
them took, how many of them its gradients are made of (passes.py), the learning rates, and which products of computed things the first loss is made of (coupled.py).

Looked at in the unchanged program and in every trial, so that a change that promises the same results is held to it:
an option or an accumulation that does something else than its name says is seen here.
"""

import collections
import math

from _tonnage_guest import events
from _tonnage_guest.state import state

from . import coupled, hooks, losses, passes, results

_UPDATES = 64  # looked at
_RATES = 16
_calls = {}  # id of a model -> _Calls since the last update
_passes = []  # of each backward pass since the last update: share of the loss (None: not known), a sum?, samples until then
_updates = []  # of each: (samples, tokens, passes, share or None, elements, samples of its last call)
_rates = []
_products = []  # of the first backward pass: what coupled.py found
_sizes = {}
_seen = 0


class _Calls:
    """What a model was called with. Samples are counted along the first dimension: where the batch is another one, as in sequences that
    have time first, they are the length, and elements say that an update in pieces is the same."""

    __slots__ = ("parameters", "samples", "tokens", "elements", "last")

    def __init__(self, parameters=0):
        self.parameters = parameters
        self.samples = self.tokens = self.elements = self.last = 0

    def add(self, tensor):
        if tensor is not None and tensor.dim():
            self.last = tensor.shape[0]
            self.samples += tensor.shape[0]
            self.elements += tensor.numel()
            self.tokens += 0 if tensor.is_floating_point() else tensor.numel()


def install(change):
    """Looks on; `change` guards."""
    events.call_began.subscribe(change.guarded(_called))
    hooks.on_optimizer(change.guarded(passes.made))
    hooks.on_backward(change.guarded(_backward))
    hooks.after_step(change.guarded(_updated))


def document():
    """What was seen, or None where no update was."""
    if not _updates:
        return None
    columns = list(zip(*_updates))
    return {
        "updates": _seen,
        "samples": _most_often(columns[0]),
        "tokens": _always(columns[1]),
        "backward": _most_often(columns[2]),
        "passes": passes.seen(),
        "loss_share": _always(columns[3]),
        "learning_rates": list(_rates),
        "products": list(_products),
        "elements": _most_often(columns[4]),
        "samples_of_call": _most_often(columns[5]),
    }


def _called(module, args, kwargs, frame):
    if module is None or _seen >= _UPDATES:
        return
    try:
        import torch

        if module.training and torch.is_grad_enabled():
            size = _sizes.get(id(module))
            if size is None:
                size = _sizes[id(module)] = sum(each.numel() for each in module.parameters() if each.requires_grad)
            _calls.setdefault(id(module), _Calls(size)).add(_first(torch, (args, kwargs)))
    except Exception:
        pass  # a model that counts nothing is not compared


def _first(torch, value, depth=0):
    """The first tensor with a dimension in a value; None: there is none."""
    if isinstance(value, torch.Tensor):
        return value if value.dim() else None
    if depth < 4 and isinstance(value, collections.abc.Mapping):
        value = list(value.values())
    if depth < 4 and isinstance(value, (list, tuple)):
        found = (_first(torch, item, depth + 1) for item in value)
        return next((each for each in found if each is not None and each.shape[0]), None)
    return None


def _backward(tensors, frame):
    import torch

    passes.begins()
    if not _seen and not _passes and not _products:
        _look_for_products(tensors)
    if _seen < _UPDATES:
        share, sums, _ = losses.weight(tensors.grad_fn) if isinstance(tensors, torch.Tensor) else (None, False, False)
        _passes.append((share, sums, _largest().samples))


def _look_for_products(loss):
    try:
        _products[:] = coupled.products(loss)
    except Exception:
        pass  # a graph that tells less than torch's: nothing is compared


def _updated(optimizer, frame):
    global _seen
    passes.updated(optimizer)
    if not _passes or _seen >= _UPDATES:
        return  # a second optimizer, or an update of something else
    if state.fast_forward is not None and _updates:  # trainers update at the end of an epoch, and epochs end early now
        _calls.clear()
        del _passes[:]
        return
    _seen += 1
    calls = _largest()
    share = _whole_share(calls.samples)
    _updates.append((calls.samples, calls.tokens, len(_passes), None if share is None else round(share, 6), calls.elements, calls.last))
    if len(_rates) < _RATES:
        _rates.append(max((float(group["lr"]) for group in optimizer.param_groups if "lr" in group), default=0.0))
    _calls.clear()
    del _passes[:]
    if _seen & (_seen - 1) == 0:
        results.changed()  # a trial may be stopped where nothing else is told any more


def _largest():
    """_Calls of the largest model since the last update."""
    return max(_calls.values(), key=lambda calls: (calls.parameters, calls.samples, calls.tokens), default=_Calls())


def _whole_share(samples):
    """How often the losses of an update count together: a mean as a whole, a sum by its samples. None: not known."""
    total, before = [], 0
    for share, is_sum, seen in _passes:
        if share is None:
            return None
        total.append(share * (seen - before) / samples if is_sum and samples else share)
        before = seen
    return math.fsum(total)


def _most_often(values):
    return collections.Counter(values).most_common(1)[0][0]


def _always(values):
    return values[0] if len(set(values)) == 1 else None
