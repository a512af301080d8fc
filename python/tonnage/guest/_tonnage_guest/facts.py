# SPDX-License-Identifier: Apache-2.0
"""What the program does about its memory already, so that nothing is advised that is so (src/verdict/advice.c).

All of it is seen in passing: autocast as it is entered, checkpointing as autograd meets it, modules as they are called,
parameters when somebody looks at what tensors are. What was not seen is not there: a fact only ever takes advice away, or
names a cause that it is evidence of.

`trained in eval()`: no call of a module with something to train was in training mode, though the program trains. What
from_pretrained returns is in eval() until somebody says train().
"""

import os
import sys
import weakref

from . import copies, frames, guard, methods, torchapi
from .state import state

_LARGE = 4096  # words: a vocabulary
_MOST_PARTS = 4
_SEGMENT = 2 << 20  # PyTorch asks the card for multiples of this

_called = {}  # id -> weak reference to a module that has been called
_survey = {}  # type of parameters -> [bytes, of which are trained]


class _Facts:
    """What was seen so far."""

    def __init__(self):
        self.autocast = set()  # names of types
        self.optimizers = set()  # names of classes
        self.calls_in_train = self.calls_in_eval = 0  # of modules with something to train
        self.eval_asked = False  # the program's own code has called eval()
        self.parts = []  # weak references to parts of called modules that have checkpointing configured
        self.waiting = False  # checkpointing is configured, and acts in training mode only
        self.checkpoints = False
        self.copy_called = False
        self.sharded = False  # parameters of FSDP were gathered
        self.gradients_in_buckets = False  # DistributedDataParallel keeps them, whatever zero_grad() does
        self.shapes = []  # of the tensors that the last call of a module was given


_facts = _Facts()


def watch_autocast(cls, name):
    """Attaches to a method that is noted as it is looked up."""
    methods.put(cls, name, guard.guarded(_entered), None)


def watch_eval_call(cls, name):
    """Attaches to a method that is noted as it is looked up."""
    methods.put(cls, name, guard.guarded(_asked), None)


def watch_train_call(cls, name):
    """As watch_eval_call."""
    methods.put(cls, name, guard.guarded(_asked_by_train), None)


def watch_eval(torch):
    """Notes whether the program's own code calls eval(), in a run that looks at nothing else. May be called again."""
    watch_eval_call(torch.nn.Module, "eval")
    watch_train_call(torch.nn.Module, "train")


@guard.alone
def note_optimizer(optimizer, frame=None):
    """An optimizer is being made."""
    copies.note_optimizer(optimizer)
    if len(_facts.optimizers) < 16:
        _facts.optimizers.add(type(optimizer).__name__[:60])


@guard.alone
def note_copies(called):
    """Tensors are looked at: whether a second copy of the model has been called until now."""
    _facts.copy_called = _facts.copy_called or called


@guard.alone
def note_shards():
    """Parameters of a shard group are gathered."""
    _facts.sharded = True


@guard.alone
def note_checkpoint():
    """A part of the model is computed again in the backward pass."""
    _facts.checkpoints = True


@guard.alone
def note_call(module, tensors):
    """A call of a module from outside, or of a compiled function (module None), with these tensors."""
    _facts.shapes[:] = [tuple(tensor.shape) for tensor in tensors[:8]]
    if module is not None:
        copies.note_call(module)
        if getattr(module, "gradient_as_bucket_view", False) is True:
            _facts.gradients_in_buckets = True
    if module is None or not state.torch.is_grad_enabled():
        return
    known = _called.get(id(module))
    if known is None or known() is not module:
        _called[id(module)] = weakref.ref(module)
        found = [part for part in module.modules() if getattr(part, "gradient_checkpointing", False) is True]
        _facts.parts.extend(weakref.ref(part) for part in found[:_MOST_PARTS])
        _facts.waiting = _facts.waiting or bool(found)
    if any(parameter.requires_grad for parameter in module.parameters()):
        if _in_training_mode(module):
            _facts.calls_in_train += 1
        else:
            _facts.calls_in_eval += 1


def _in_training_mode(module):
    # An adapter's own module is in training mode as it is made, while the model in it is still in eval().
    parts = [part for part in (reference() for reference in _facts.parts) if part is not None]
    return any(part.training for part in parts) if parts else module.training


@guard.alone
def trained_in_eval(module=None):
    """True when the program trains a model that is in eval(). With `module`: also when this is its first call."""
    calls = _facts.calls_in_eval + (module is not None)
    return state.trains and not _facts.calls_in_train and calls > 0 and (state.updates > 0 or not _facts.eval_asked)


def called_modules():
    """Modules that were called from outside to be trained, and are still there."""
    return [module for module in (reference() for reference in list(_called.values())) if module is not None]


def eval_was_asked():
    """True when the program's own code has called eval()."""
    return _facts.eval_asked


@guard.alone
def begin_survey():
    """Parameters are looked at anew."""
    _survey.clear()


@guard.alone
def note_parameter(parameter):
    """A parameter of a module or an optimizer, once a survey."""
    if parameter.is_cuda:
        row = _survey.setdefault(str(parameter.dtype).rpartition(".")[2], [0, 0])
        row[0] += parameter.nbytes
        row[1] += parameter.nbytes if parameter.requires_grad else 0


@guard.alone
def document():
    """For guest/<pid>.json."""
    return {
        "trains": state.trains,
        "autocast": sorted(_facts.autocast),
        "optimizers": sorted(_facts.optimizers),
        "checkpointing": _facts.checkpoints,
        "checkpointing_waits": _facts.waiting and not _facts.checkpoints,
        "trained_in_eval": trained_in_eval(),
        "never_updated": state.trains and state.backwards > 1 and state.updates == 0,
        "loader": state.loader_seen,
        "copy_called": _facts.copy_called,
        "sharded": _facts.sharded,
        "gradients_in_buckets": _facts.gradients_in_buckets,
        "cudnn_benchmark": bool(state.torch.backends.cudnn.benchmark),
        "workspace_config": "CUBLAS_WORKSPACE_CONFIG" in os.environ,
        "expandable_segments": "expandable_segments:true" in _settings(),
        "parameters": [{"type": name, "bytes": row[0], "trained_bytes": row[1]} for name, row in sorted(_survey.items())],
        "architectures": torchapi.architectures(),
    }


@guard.alone
def vocabulary_of(requested, modules):
    """How many words a request that was refused is logits over; None when it is none. Told from sizes alone: to look at a
    frame's variables would keep its tensors alive."""
    words = {module.num_embeddings for module in modules
             if isinstance(module, state.torch.nn.Embedding) and module.num_embeddings >= _LARGE}
    for shape in _facts.shapes:
        if len(shape) == 2:
            for rows in (shape[0] * shape[1], shape[0] * (shape[1] - 1)):
                for count in words:
                    if _is_size(rows * count, requested):
                        return count
    return None


def _is_size(elements, requested):
    return any(0 <= requested - elements * size < _SEGMENT for size in (2, 4))


def _entered(context):
    if getattr(context, "_enabled", False) and getattr(context, "device", None) == "cuda":
        _facts.autocast.add(str(getattr(context, "fast_dtype", "")).rpartition(".")[2])


def _asked(module):
    _facts.eval_asked = _facts.eval_asked or _is_users(sys._getframe(1))


def _asked_by_train(module):
    """A library's own eval() may set the mode by train(False)."""
    if _facts.eval_asked:
        return
    frame, seen = sys._getframe(1), False
    while frame is not None and (frame.f_code.co_name in ("eval", "train") or frames.kind(frame.f_code) is frames.OWN):
        seen = seen or frame.f_code.co_name == "eval"
        frame = frame.f_back
    _facts.eval_asked = seen and _is_users(frame)


def _is_users(frame):
    while frame is not None and frames.kind(frame.f_code) is frames.OWN:
        frame = frame.f_back
    return frame is not None and frames.kind(frame.f_code, frame.f_globals) is frames.USER


def _settings():
    return "".join(os.environ.get(name, "") for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")).lower()
