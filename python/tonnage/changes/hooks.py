# SPDX-License-Identifier: Apache-2.0
"""What happens in torch, for changes that act while the program runs.

Each function here puts one hook there, once, however many changes ask for it; callbacks are called in the order in
which they came. Callbacks are guarded by their change (results.Change.guarded). Nothing is hooked that no change
asks for.
"""

import functools
import sys
import weakref

from _tonnage_guest import calls, events, frames, imports, torchapi

training = True  # what the last call of Module.train() or eval() said
_installed = set()
_lists = {}


def place(frame):
    """{"file", "line", "function"} of the user's innermost frame at or above `frame`, or None."""
    found = frames.place(frame)
    return frames.describe(found) if found is not None and frames.is_users(found.f_code.co_filename) else None


def frame_of_user(frame):
    """The user's innermost frame at or above `frame`, or None."""
    return frames.place(frame)


def on_torch(callback):
    """callback(torch) once torch is there."""
    imports.watch("torch", callback)


def _add(name, callback, install):
    _lists.setdefault(name, []).append(callback)
    if name not in _installed:
        _installed.add(name)
        install()
    return _lists[name]


def _first(name, *args):
    """The first answer of the callbacks that is not None."""
    for callback in _lists.get(name, ()):
        answer = callback(*args)
        if answer is not None:
            return answer
    return None


def _all(name, *args):
    for callback in _lists.get(name, ()):
        callback(*args)


def value_of(frame, name):
    """What a dotted name means in a frame, or None."""
    first, *rest = name.split(".")
    value = frames.variables(frame).get(first, frame.f_globals.get(first))
    for part in rest:
        attributes = getattr(value, "__dict__", {})
        value = attributes[part] if part in attributes else getattr(value, "_modules", {}).get(part)
    return value


# ---- updates ----


def skip_step(callback):
    """callback(optimizer, frame) -> True when this call of step() shall do nothing (a closure is still called)."""
    _add("skip_step", callback, _install_steps)


def after_step(callback):
    """callback(optimizer, frame) after an update was made."""
    _add("after_step", callback, _install_steps)


def _install_steps():
    if "steps" not in _installed:
        _installed.add("steps")
        events.optimizer_ready.subscribe(_wrap_step)


def _wrap_step(optimizer):
    kind = type(optimizer)
    if not getattr(kind.step, "_tonnage", False):
        kind.step = hooked_step(kind.step)


def hooked_step(original):
    """step() of an optimizer, or of one object that has its own (offload_optimizer.py)."""

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        frame = sys._getframe(1)
        if _first("skip_step", self, frame):
            return _call_closure(*args, **kwargs)
        result = original(self, *args, **kwargs)
        _all("after_step", self, frame)
        return result

    step.hooked = step._tonnage = True
    return step


def _call_closure(closure=None, **kwargs):
    if closure is None:
        return None
    import torch

    with torch.enable_grad():
        return closure()


def skip_zero_grad(callback):
    """callback((optimizer or module, ...), frame) -> True when this call of zero_grad() shall do nothing."""
    _add("skip_zero_grad", callback, _install_zero_grad)


def _install_zero_grad():
    imports.watch("torch.optim.optimizer", lambda module: gate(module.Optimizer, "zero_grad", "skip_zero_grad"))
    imports.watch("torch.nn.modules.module", lambda module: gate(module.Module, "zero_grad", "skip_zero_grad"))


def gate(owner, name, kind, result=None):
    """Puts a gate before a method or function: `kind` says which callbacks decide that it does nothing."""
    setattr(owner, name, gated(getattr(owner, name), kind, result))


def gated(original, kind, result=None):
    """A function with such a gate before it."""

    @functools.wraps(original)
    def gate_of(*args, **kwargs):
        if _first(kind, args, sys._getframe(1)):
            return result() if result is not None else None
        return original(*args, **kwargs)

    return gate_of


def skip_around_step(callback):
    """callback(arguments, frame) -> True when a call that belongs to the update shall do nothing: gradient scalers,
    clipping of gradients, schedulers of the learning rate, averages of the model."""

    def install():
        imports.watch("torch.amp.grad_scaler", _gate_scaler)
        imports.watch("torch.nn.utils.clip_grad", _gate_clipping)
        imports.watch("torch.optim.lr_scheduler", _gate_schedulers)
        for name, kind, method in _AVERAGES:
            imports.watch(name, functools.partial(_gate_method, kind, method))

    _add("skip_around_step", callback, install)


# Where an average of a model's parameters is moved: module, class, method.
_AVERAGES = (
    ("torch.optim.swa_utils", "AveragedModel", "update_parameters"),
    ("diffusers.training_utils", "EMAModel", "step"),
    ("ema_pytorch.ema_pytorch", "EMA", "update"),
    ("torch_ema.ema", "ExponentialMovingAverage", "update"),
    ("timm.utils.model_ema", "ModelEma", "update"),
    ("timm.utils.model_ema", "ModelEmaV2", "update"),
    ("timm.utils.model_ema", "ModelEmaV3", "update"),
)


def _gate_method(kind, method, module):
    owner = getattr(module, kind, None)
    if isinstance(owner, type) and method in vars(owner):
        gate(owner, method, "skip_around_step")


def _gate_scaler(module):
    for name in ("step", "update", "unscale_"):
        gate(module.GradScaler, name, "skip_around_step")


def _gate_clipping(module):
    import torch

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        gate(module, name, "skip_around_step", lambda: torch.zeros(()))
        for user in ("torch.nn.utils", "torch.nn.utils.clip_grad"):
            if user in sys.modules and hasattr(sys.modules[user], name):
                setattr(sys.modules[user], name, getattr(module, name))


def _gate_schedulers(module):
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and "step" in vars(kind)]
    for kind in kinds:
        gate(kind, "step", "skip_around_step")


def on_scale(callback):
    """callback(loss) -> another loss, or None; before a gradient scaler multiplies a loss."""

    def watch(module):
        original = module.GradScaler.scale

        @functools.wraps(original)
        def scale(self, outputs):
            answer = _first("scale", outputs)
            if answer is None:
                return original(self, outputs)
            outputs = None  # only what is scaled lives on
            result = original(self, answer)
            result._tonnage_divided = True
            return result

        module.GradScaler.scale = scale

    _add("scale", callback, lambda: imports.watch("torch.amp.grad_scaler", watch))


# ---- backward ----


def on_backward(callback):
    """callback(tensors, frame) -> other tensors to differentiate, or None; before each backward pass, but not within one: a segment that was
    checkpointed reentrantly goes backward by itself, as a part of the pass that needs it."""

    def install():
        imports.watch("torch.autograd", _watch_backward)

    _add("backward", callback, install)


def _watch_backward(module):
    original = module.backward

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        for callback in _lists["backward"] if torchapi.in_backward() < 0 else ():
            answer = callback(tensors, sys._getframe(1))
            tensors = answer if answer is not None else tensors
        return original(tensors, *args, **kwargs)

    module.backward = backward


# ---- batches ----


def on_loader(callback):
    """callback(loader, frame) when a DataLoader was made."""

    def watch(module):
        cls = module.DataLoader
        original = cls.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            _all("loader", self, sys._getframe(1))

        cls.__init__ = __init__

    _add("loader", callback, lambda: imports.watch("torch.utils.data.dataloader", watch))


def on_epoch(callback):
    """callback(loader, frame) when a DataLoader is about to be used: iterated, or measured by a trainer."""

    def watch(module):
        cls = module.DataLoader
        for name in ("__iter__", "__len__"):
            setattr(cls, name, _announced(getattr(cls, name), name == "__len__"))

    watch_training_mode()
    _add("epoch", callback, lambda: imports.watch("torch.utils.data.dataloader", watch))


def on_length(callback):
    """callback(loader, frame) -> what the program is told when it asks for a DataLoader's length, or None. Needs on_epoch."""
    _add("length", callback, lambda: None)


def _announced(original, measured):
    @functools.wraps(original)
    def call(self):
        frame = sys._getframe(1)
        if not measured or frames.kind(frame.f_code, frame.f_globals) is not frames.USER:
            _all("epoch", self, frame)
            return original(self)
        answer = _first("length", self, frame)
        return original(self) if answer is None else answer

    return call


def on_batch(callback):
    """callback(iterator, there, frame) when a batch was fetched (True), or its epoch has ended (False)."""

    def watch(module):
        cls = module._BaseDataLoaderIter
        original = cls.__next__

        @functools.wraps(original)
        def __next__(self):
            try:
                batch = original(self)
            except StopIteration:
                _all("batch", self, False, sys._getframe(1))
                raise
            _all("batch", self, True, sys._getframe(1))
            return batch

        cls.__next__ = __next__
        cls.next = __next__

    _add("batch", callback, lambda: imports.watch("torch.utils.data.dataloader", watch))


def watch_training_mode():
    """Keeps `training` right. What a module says to its parts counts as one call; parts that are frozen beside a model that trains (batch
    normalisation, a backbone) say nothing of it."""
    if "mode" in _installed:
        return
    _installed.add("mode")
    told = _Told()

    def watch(module):
        original = module.Module.train

        @functools.wraps(original)
        def train(self, mode=True):
            outermost, told.inside = not told.inside, True
            try:
                return original(self, mode)
            finally:
                if outermost:
                    told.inside = False
                    told.take(self, mode)

        module.Module.train = train

    imports.watch("torch.nn.modules.module", watch)


class _Told:
    """Which model was told to train."""

    def __init__(self):
        self.inside = False  # a call of train() is under way
        self._model = None  # weak reference to the one that was told last

    def take(self, module, mode):
        """A module was told. Never raises."""
        global training
        try:
            if mode:
                self._model = weakref.ref(module)
            if mode or not self._is_part(module):
                training = bool(mode)
        except Exception:
            training = bool(mode)  # a module of another shape

    def _is_part(self, module):
        """True for a layer of normalisation or dropout, and for less than all of the model that trains."""
        norm, drop = sys.modules.get("torch.nn.modules.batchnorm"), sys.modules.get("torch.nn.modules.dropout")
        if (norm and isinstance(module, norm._NormBase)) or (drop and isinstance(module, drop._DropoutNd)):
            return True
        model = self._model() if self._model is not None else None
        if model is None or model is module or all(part is not module for part in model.modules()):
            return False
        return _size(module) < _size(model)


def _size(module):
    return sum(each.numel() for each in module.parameters())


# ---- modules ----


def before_forward(callback):
    """callback(module, frame) before a module is called that no other module has called, until release() of the handle. Not while
    torch.jit.trace records: what the callback reads would be recorded, and torch compares the graphs of two calls.

    Returns a list that holds the handle once torch is there."""
    handle = []

    def watch(module):
        code = module.Module._call_impl.__code__

        def hook(called, args):
            frame = sys._getframe(1)
            if not calls.is_traced() and not _is_nested(frame, code):
                callback(called, frame)

        hook._torchdynamo_disable = True
        handle.append(module.register_module_forward_pre_hook(hook))

    imports.watch("torch.nn.modules.module", watch)
    return handle


def _is_nested(frame, code):
    seen = 0
    while frame is not None:
        if frame.f_code is code:
            seen += 1
            if seen == 2:
                return True
        frame = frame.f_back
    return False


def release(handle):
    """Takes a hook away."""
    while handle:
        handle.pop().remove()


def on_optimizer(callback):
    """callback(optimizer, frame) when an optimizer of torch is made, before it has parameters; the frame is the one that makes it, not its own
    __init__, which may be the program's."""

    def watch(module):
        cls = module.Optimizer
        original = cls.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            frame = sys._getframe(1)
            while frame.f_back is not None and _is_init_of(frame, self):
                frame = frame.f_back
            _all("optimizer", self, frame)
            original(self, *args, **kwargs)

        cls.__init__ = __init__

    _add("optimizer", callback, lambda: imports.watch("torch.optim.optimizer", watch))


def _is_init_of(frame, made):
    code = frame.f_code
    return code.co_name == "__init__" and code.co_argcount > 0 and value_of(frame, code.co_varnames[0]) is made


def on_trace(callback):
    """callback() before a module or a function is traced by torch.jit.trace (tensorboard's add_graph does)."""

    def watch(module):
        original = module.trace

        @functools.wraps(original)
        def trace(*args, **kwargs):
            _all("trace")
            return original(*args, **kwargs)

        module.trace = trace

    _add("trace", callback, lambda: imports.watch("torch.jit", watch))


def on_moved(callback):
    """callback(module, frame, device) before a module is moved by .cuda() or .to(); device is None when it stays where it
    is and changes its type only."""

    def watch(module):
        for name in ("cuda", "to"):
            original = getattr(module.Module, name)

            def moved(self, *args, _original=original, _name=name, **kwargs):
                _all("moved", self, sys._getframe(1), _device(_name, args, kwargs))
                return _original(self, *args, **kwargs)

            setattr(module.Module, name, functools.wraps(original)(moved))

    _add("moved", callback, lambda: imports.watch("torch.nn.modules.module", watch))


def _device(name, args, kwargs):
    """Where .cuda() or .to() moves a module, None for nowhere."""
    import torch

    if name == "cuda":
        given = args[0] if args else kwargs.get("device")
        args, kwargs = ("cuda" if given is None else given,), {}
    try:
        return torch._C._nn._parse_to(*args, **kwargs)[0]
    except (TypeError, RuntimeError):
        return None  # the call itself will say what is wrong
