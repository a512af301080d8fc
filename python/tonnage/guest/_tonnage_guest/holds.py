# SPDX-License-Identifier: Apache-2.0
"""What live tensors are, by what the framework itself holds: parameters, buffers and other tensors of modules, `.grad`, the
state of optimizers.

Modules are known from the moment that they register a parameter or a buffer, copies and loaded ones from the moment that their
state is set; optimizers from their first update. All by weak references: nothing lives longer for us.
"""

import functools
import weakref

from . import copies, facts, guard, metadata, references, usage
from .state import state

_modules = {}  # id -> weak reference to a module that owns parameters
_buffered = {}  # the same of modules that own buffers
_optimizers = {}
lasting = []  # functions that give the rows of what a library keeps
_owned = {}  # id -> reference to a parameter that some module has, or had


def modules():
    """Living modules that own parameters."""
    return _living(_modules)


@guard.guarded
def update_began(optimizer, frame):
    """An optimizer is about to make an update."""
    _note(_optimizers, optimizer)
    look_at_gradients(optimizer)


@guard.alone
@guard.uncollected
def look():
    """Metadata what every tensor is now."""
    rows = []
    seen = set()
    facts.begin_survey()
    owners = tuple(_living(_modules))
    second, called = copies.find(owners)
    facts.note_copies(called)
    names = copies.names(owners)
    for module in owners:
        for parameter in tuple(module._parameters.values()):
            _add_parameter(rows, seen, parameter, "copy of the model" if id(parameter) in second else names.get(id(module), ""))
        for name, tensor in tuple(module._buffers.items()):
            if tensor is not None:
                _add_kept(rows, tensor, "pruning masks" if _is_mask(module, name) else "kept by modules")
        for name, tensor in tuple(module.__dict__.items()):
            if isinstance(tensor, state.torch.Tensor):
                pruned = name + "_orig" in module._parameters
                _add_kept(rows, tensor, "pruned weights" if pruned else "kept by modules", pruned)
    for module in _living(_buffered):
        if not module._parameters:  # a cache of keys and values, say: it may be there for the batch, which is no part of the model
            for tensor in tuple(module._buffers.values()):
                if tensor is not None:
                    _add_kept(rows, tensor, "buffers of %s" % type(module).__name__)
    for optimizer in _living(_optimizers):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                _add_parameter(rows, seen, parameter, "held by an optimizer alone" if _was_owned(parameter) else "")
        for values in tuple(optimizer.state.values()):
            _add_state(rows, values)
    for of_library in lasting:
        rows.extend(of_library())
    metadata.looks.append((metadata.now(), rows))


def note_optimizer(optimizer):
    """One whose state may be there before its first update: it was loaded."""
    _note(_optimizers, optimizer)


def look_at_gradients(optimizer):
    """Metadata the gradients that an update is about to use: it may free them."""
    rows, seen = [], set()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            _add_parameter(rows, seen, parameter, survey=False)
    metadata.looks.append((metadata.now(), rows))


def rows_of(category, tensor, label, whole=False):
    """One row a piece of memory that a tensor stands on; `whole`: with all that its storage keeps alive beside it. No row
    for a tensor without memory of its own: fake, functional, meta, wrapped by a transform, not materialised, freed. Nothing of a
    subclass's own code runs but __tensor_flatten__."""
    try:
        with state.torch._C.DisableTorchFunctionSubclass():
            return _rows_of(category, tensor, label, whole)
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return []


def _rows_of(category, tensor, label, whole):
    if _is_fake(type(tensor)):
        return []
    if _is_made_of_others(type(tensor)):
        names, _ = tensor.__tensor_flatten__()
        return [row for name in names for row in rows_of(category, getattr(tensor, name), label, whole)]
    if not tensor.is_cuda:
        return []
    if tensor.layout is not state.torch.strided:
        return _rows_of_sparse(category, tensor, label, whole)
    if whole:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
    else:
        address, size = tensor.data_ptr(), tensor.nbytes
        if not tensor.is_contiguous():  # an expanded one has more elements than its storage
            size = min(size, tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size())
    return [(category, address, size, label)] if address and size > 0 else []


@functools.lru_cache(maxsize=None)
def _is_fake(kind):
    """True for the classes that stand for tensors of another device without their memory: FakeTensor, FunctionalTensor."""
    return any(cls.__module__.startswith("torch._subclasses.") for cls in kind.__mro__)


@functools.lru_cache(maxsize=None)
def _is_made_of_others(kind):
    """True for the classes of quantised and distributed tensors."""
    return hasattr(kind, "__tensor_flatten__")


def _rows_of_sparse(category, tensor, label, whole):
    if tensor.layout is not state.torch.sparse_coo:
        return []
    parts = (tensor._indices(), tensor._values())
    return [row for part in parts for row in rows_of(category, part, label, whole)]


def _was_owned(parameter):
    reference = _owned.get(id(parameter))
    return reference is not None and reference() is parameter


def _is_mask(module, name):
    """torch.nn.utils.prune keeps `weight_mask` beside `weight_orig`, and their product as `weight`."""
    return name.endswith("_mask") and name[:-len("_mask")] + "_orig" in module._parameters


def _add_parameter(rows, seen, parameter, label="", survey=True):
    if parameter is None or id(parameter) in seen:
        return
    seen.add(id(parameter))
    if survey:
        facts.note_parameter(parameter)
    try:
        rows.extend(rows_of("parameters", parameter, label))
        if parameter.is_leaf and parameter.grad is not None:
            rows.extend(rows_of("gradients", parameter.grad, ""))
    except (RuntimeError, NotImplementedError):
        pass  # a tensor without memory of its own: not materialised, fake, freed


def _add_kept(rows, tensor, label, computed=False):
    """`computed`: also what a graph made."""
    try:
        if computed or tensor.grad_fn is None:
            rows.extend(rows_of("temporaries", tensor, label))
    except (RuntimeError, NotImplementedError):
        pass


def _add_state(rows, values):
    if not isinstance(values, dict):
        return
    for name, value in tuple(values.items()):
        if isinstance(value, state.torch.Tensor):
            try:
                rows.extend(rows_of("optimizer_state", value, "%s %s" % (name, _short(value.dtype))))
            except (RuntimeError, NotImplementedError):
                pass


def _short(dtype):
    return str(dtype).rpartition(".")[2]


def _living(table):
    for key, reference in tuple(table.items()):
        thing = reference()
        if thing is None:
            del table[key]
        else:
            yield thing


def _note(table, thing, gone=None):
    found = table.get(id(thing))
    if found is None or found() is not thing:
        table[id(thing)] = weakref.ref(thing, gone)


def watch_parameters(module, name):
    """Registers torch's own hook."""
    getattr(module, name)(_registered)


def watch_buffers(module, name):
    """Registers torch's own hook."""
    getattr(module, name)(_buffer_registered)


def watch_children(module, name):
    """Registers torch's own hook."""
    getattr(module, name)(_put_into)


def around_setstate(original):
    """For the method that a copied or loaded module gets its state by."""

    def __setstate__(self, state):
        original(self, state)
        _copied(self)

    __setstate__.__doc__ = original.__doc__
    return __setstate__


@guard.guarded
def _registered(module, name, parameter):
    _note(_modules, module, _module_gone)
    if parameter is not None:
        _owned[id(parameter)] = references.to(parameter)


@guard.guarded
def _buffer_registered(module, name, buffer):
    _note(_buffered, module)


@guard.guarded
def _put_into(module, name, child):
    copies.note_child(module, child)


@guard.guarded
def _copied(module):
    for child in module._modules.values():
        copies.note_child(module, child)
    if module._buffers:
        _note(_buffered, module)
    if module._parameters:
        _note(_modules, module, _module_gone)
        for parameter in module._parameters.values():
            if parameter is not None:
                _owned[id(parameter)] = references.to(parameter)


_module_gone = guard.guarded(lambda reference: usage.note_deletion())
