# SPDX-License-Identifier: Apache-2.0
"""Modules that move buffers of their own in each forward pass in training: codebooks by running averages, queues of negatives, counters.

A batch cut into pieces moves them once a piece, and a block that is computed again in backward moves them twice: both are another
training. Batch normalisation does the same and is treated by itself (held_back.py, checkpoint.py).

Read in the text of the module's classes, from `forward` on through its own methods: an in-place method of a buffer or of its `.data`, an
assignment to a part of it, or one that reads it, too. What is assigned without being read is a cache, and is made anew. Of torch's layers
(torch.nn.modules), whose buffers are moved in C++, those for single instances move theirs where they keep running statistics, and so does
a module that gives its own to torch's functions of those names.

What is done elsewhere, as by a function that is given the buffers, or by torch's spectral_norm, is seen (Watch): PyTorch counts what is
written in place to a tensor (Tensor._version).
"""

import ast
import inspect
import sys
import textwrap
import weakref

_CARRIES = ("to", "cuda", "cpu", "float", "half", "type", "type_as", "contiguous")
_SETS = ("fill_", "zero_")  # to a constant: twice is as good as once, such as a flag that a first batch was seen
_NORMS = ("batch_norm", "instance_norm")  # of torch.nn.functional: what is behind their input is moved
_READ = {}  # class -> names of buffers that forward moves


def of(module):
    """The first part of a module that moves buffers of its own, or None."""
    return next((part for part in module.modules() if moves(part)), None)


def moves(part):
    """True where a call of this one part moves a buffer that it has."""
    buffers = {name for name, value in part._buffers.items() if value is not None}
    if not buffers or not part.training:
        return False
    return _keeps_statistics(part) or not buffers.isdisjoint(_moved_by(type(part)))


class Watch:
    """Sees which buffers a model's second call in training writes to: the first may set up what stays."""

    def __init__(self, change, tell):
        self.look = change.guarded(self._after)
        self.tell = tell  # called with the modules that have such buffers
        self.calls = weakref.WeakKeyDictionary()

    def called(self, root):
        """Before a call of a model."""
        torch = sys.modules["torch"]
        if not root.training or not torch.is_grad_enabled() or _takes_no_hook(torch, root):
            return
        self.calls[root] = count = self.calls.get(root, 0) + 1
        if count != 2:
            return
        before = [(part, name, buffer, buffer._version) for part in root.modules() if not _is_batch_norm(part)
                  for name, buffer in part._buffers.items() if buffer is not None and not buffer.is_inference()]
        if before:
            handle = root.register_forward_hook(lambda module, args, output: self.look(handle, before))

    def _after(self, handle, before):
        handle.remove()
        moved = [part for part, name, buffer, version in before if buffer._version != version and name not in _set_by(type(part))]
        if moved:
            self.tell(moved)


def _takes_no_hook(torch, root):
    """What torch.compile() has made would be compiled again; torch.jit's modules refuse."""
    return hasattr(root, "_orig_mod") or root._compiled_call_impl is not None or isinstance(root, torch.jit.ScriptModule)


def _is_batch_norm(part):
    return isinstance(part, sys.modules["torch.nn.modules.batchnorm"]._BatchNorm)


def _set_by(cls):
    """Names of attributes that the methods of a class fill with constants."""
    calls = [node for method in _methods(cls).values() for node in ast.walk(method) if isinstance(node, ast.Call)]
    return {_base(call.func.value) for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _SETS}


def _keeps_statistics(part):
    norm = sys.modules["torch.nn.modules.instancenorm"]._InstanceNorm
    return isinstance(part, norm) and part.track_running_stats


def _moved_by(cls):
    if cls not in _READ:
        _READ[cls] = _moved_in(_methods(cls))
    return _READ[cls]


def _methods(cls):
    """{name: node} of the methods of a class and of those above it, but those of torch's layers."""
    found = {}
    for each in cls.__mro__:
        if each.__module__.startswith("torch.nn.modules.") or each is object:
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        except (OSError, TypeError, SyntaxError):
            continue
        for node in tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, node)
    return found


def _moved_in(methods):
    moved, waiting, seen = set(), ["forward"], {"forward"}
    for name in waiting:
        for node in ast.walk(methods[name]) if name in methods else ():
            moved |= _moved_at(node)
            called = _own(node.func) if isinstance(node, ast.Call) else None
            if called is not None and called not in seen:
                seen.add(called)
                waiting.append(called)
    return moved


def _moved_at(node):
    """Names of attributes of `self` that this node alone moves."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _NORMS:
            words = [word.value for word in node.keywords if word.arg in ("running_mean", "running_var")]
            return {_base(argument) for argument in node.args[1:3] + words} - {None}
        if "inplace" not in name and (not name.endswith("_") or name.endswith("__")):
            return set()
        if name in _SETS and all(isinstance(argument, ast.Constant) for argument in node.args):
            return set()
        if isinstance(node.func, ast.Attribute) and "inplace" not in name:
            return {_base(node.func.value)} - {None}
        return {_base(node.args[0]) if node.args else None} - {None}
    if isinstance(node, ast.AugAssign):
        return {_base(node.target)} - {None}
    if isinstance(node, ast.Assign) and not _only_carries(node.value):
        return {found for target in node.targets for found in [_base(target)] if found is not None and (
            isinstance(target, ast.Subscript) or any(_own(read) == found for read in ast.walk(node.value)))}
    return set()


def _only_carries(value):
    """self.name.to(device) and the like: to another place or type, with the same values. What a method of its own makes is a cache."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and (
        value.func.attr in _CARRIES or _own(value.func) is not None)


def _own(node):
    """`name` of self.name, or None."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else None


def _base(node):
    """`name` of self.name, self.name.data and self.name[...], or None."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    return _own(node)
