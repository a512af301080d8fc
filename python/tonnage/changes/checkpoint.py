# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of the model's repeated blocks: each keeps its input only and is computed again in
backward.

The blocks are found in the module tree when a model is first called in training. A model of transformers does it
itself where it can. Batch normalisation would move its running statistics twice: its momentum is zero during the
second time.
"""

import ast
import inspect
import weakref

from . import arguments, blocks, code, hooks, moving_state, rewrite, table
from .source import Conflict

_HOW = "Checkpoint the %d %s blocks%s: their activations are computed again in backward."
_MOST_OPTIMIZERS = 64
_ATTACHES = ("setattr", "add_module", "register_module")
_MOVING = "%s moves buffers of its own in each forward pass: where that is computed again, it does so twice, which is another training."


def install(change):
    """value: k, every k-th block (default 1, all)."""
    value = change.value or "1"
    if not value.isdigit() or int(value) < 1:
        change.cannot("needs a number: checkpoint=2 for every second block")
        return
    _Checkpoint(change, int(value)).install()


class _Checkpoint:
    def __init__(self, change, every):
        self.change = change
        self.every = every
        self.seen = set()  # ids of modules that were looked at, and of all modules inside them
        self.optimizers = []  # (place where an optimizer was made, modules that have names there)
        self.unnamed = False  # a module is computed again that no patch can name: part of what was tried is no patch
        self.written = set()  # (id of a statement, name of the module in front of it): a training that begins again makes no second patch
        self.defined_at = set()  # ids of statements that the helpers of the patch stand in front of
        self.traced = False  # by torch.jit.trace, in which nothing is checkpointed
        self.handle = []
        self.computed_again = weakref.WeakSet()  # parts of the blocks
        self.watched = moving_state.Watch(change, self.moves)

    def install(self):
        guarded = self.change.guarded
        self.handle.append(hooks.before_forward(guarded(self.called)))
        hooks.on_optimizer(guarded(self.note_optimizer))
        hooks.on_trace(guarded(self.note_trace))
        arguments.hugging_face(self.change, self.for_hugging_face)

    def for_hugging_face(self, fields):
        if self.every != 1:
            return {}
        names = ("activation_checkpointing", "gradient_checkpointing")
        name = next((name for name in names if hasattr(fields, name)), names[1])
        self.handle_out()
        return {name: True, name + "_kwargs": {"use_reentrant": False}}

    def handle_out(self):
        for handle in self.handle:
            hooks.release(handle)

    def note_trace(self):
        self.traced = True

    def note_optimizer(self, optimizer, frame):
        place = hooks.place(frame)
        if place is not None and len(self.optimizers) < _MOST_OPTIMIZERS:
            self.optimizers.append((place, _modules_at(place, hooks.frame_of_user(frame))))

    def called(self, root, frame):
        import torch

        self.watched.called(root)
        if id(root) in self.seen or not root.training or not torch.is_grad_enabled():
            return
        self.seen.update(id(module) for module in root.modules())
        found = blocks.of(root)
        chosen = found[::self.every]
        if len(found) < 2:
            return
        own = _own_method(root)
        if own is not None:
            words = {own.replace("enable", "kwargs"): {"use_reentrant": False}}
            if self.every > 1:
                if "every_n_layers" not in inspect.signature(getattr(root, own)).parameters:
                    self.change.cannot("this release of transformers checkpoints all blocks or none")
                    return
                words["every_n_layers"] = self.every
            getattr(root, own)(**words)
            own = "%s(%s)" % (own, ", ".join("%s=%r" % pair for pair in words.items()))
        else:
            for name, block in chosen:
                _apply(torch, block, self.traced)
        place = hooks.place(frame)
        kind = type(found[0][1]).__name__
        moving = next((part for name, block in chosen for part in [moving_state.of(block)] if part is not None), None)
        self.computed_again.update(part for name, block in chosen for part in block.modules())
        if moving is not None:
            self.moves([moving])
        for name, block in chosen:
            self.change.note(place, "%s is computed again in backward" % kind, module=name)
        self.change.effect(len(chosen))
        which = "" if self.every == 1 else ", every %s" % _ordinal(self.every)
        arguments.say(self.change, _HOW % (len(chosen), kind, which))
        if not self.unnamed and not self.make_patch(torch, root, found, place, frame, own):
            self.unnamed = True
            self.change.patches.clear()

    def moves(self, parts):
        """These parts move buffers; only what is computed again counts."""
        part = next((part for part in parts if part in self.computed_again), None)
        if part is not None and self.change.results != table.DIFFERENT:
            self.change.weaken(table.DIFFERENT)
            arguments.say(self.change, _MOVING % type(part).__name__)

    # ---- the patch ----

    def make_patch(self, torch, root, found, place, frame, own):
        """In front of the statement that makes the optimizer, or of the outermost loop that calls the model; and of loops that this statement
        stands in, where they make no other model. False where the model has no name there."""
        for where, named in self.optimizers:
            name = _name_of(root, named)
            if name is not None:
                text = rewrite.source_at(where)
                statement = _before_loops(text, text.statement(text.calls_at(where["line"])[0]), name)
                return statement is not None and self.write(torch, root, text, statement, name, found, own)
        name = _name_of(root, _modules_at(place, hooks.frame_of_user(frame))) if place is not None else None
        if name is None:
            return False
        text = rewrite.source_at(place)
        statement = text.statement(text.calls_at(place["line"])[0])
        while text.above(statement, *code.LOOPS) is not None:
            statement = text.above(statement, *code.LOOPS)
        return isinstance(text.scope(statement), ast.Module) and self.write(torch, root, text, statement, name, found, own)

    def write(self, torch, root, text, statement, name, found, own):
        edits = self.change.edits(text)
        if (id(statement), name) in self.written:
            return True
        self.written.add((id(statement), name))
        try:
            if own is not None:
                edits.insert_before(statement, "%s.%s" % (name, own))
            else:
                edits.insert_before(statement, *self.lines(torch, root, name, found, statement))
                code.need_import(edits, "functools")
                code.need_import(edits, "torch.utils.checkpoint")
        except Conflict:
            return False
        return True

    def lines(self, torch, root, name, found, statement):
        every = "" if self.every == 1 else "[::%d]" % self.every
        path = blocks.common_path(found)
        kind = type(found[0][1])
        if path is not None and blocks.is_list_of(found, root, path):
            loop = "for block in %s%s:" % (_join(name, path), every)
        elif path is not None or kind.__name__ == "Sequential":
            names = ", ".join('"%s"' % block for block, module in found)
            loop = "for block in [%s.get_submodule(n) for n in (%s)]%s:" % (name, names, every)
        else:
            chosen = 'm for m in %s.modules() if type(m).__name__ == "%s"' % (name, kind.__name__)
            loop = "for block in [%s]%s:" % (chosen, every)
        norms = any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for _, b in found for m in b.modules())
        helpers = [*([*_UNTRACED, ""] if self.traced else []), *([*_FROZEN, ""] if norms else [])]
        defined = [] if id(statement) in self.defined_at else helpers
        self.defined_at.add(id(statement))
        function = "checkpointed" if self.traced else "torch.utils.checkpoint.checkpoint"
        start = "        %s, block.forward, use_reentrant=False" % function
        if not norms:
            return [*defined, loop, "    block.forward = functools.partial(", start + ")"]
        return [*defined, loop, "    block.forward = functools.partial(", start + ",", "        context_fn=frozen_statistics(block))"]


_UNTRACED = '''\
def checkpointed(forward, *args, **kwargs):
    """Not while torch.jit.trace runs the model: its checks would find another graph each time."""
    if torch.jit.is_tracing():
        del kwargs["use_reentrant"]
        kwargs.pop("context_fn", None)
        return forward(*args, **kwargs)
    return torch.utils.checkpoint.checkpoint(forward, *args, **kwargs)
'''.rstrip().split("\n")
_FROZEN = '''\
def frozen_statistics(block):
    """Batch normalisation moves its running statistics in forward only, not when backward computes it again."""
    import contextlib

    norms = [m for m in block.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]

    @contextlib.contextmanager
    def again():
        momentum = [norm.momentum for norm in norms]
        try:
            for norm in norms:
                norm.momentum = 0.0
            yield
        finally:
            for norm, old in zip(norms, momentum):
                norm.momentum = old

    return lambda: (contextlib.nullcontext(), again())
'''.rstrip().split("\n")


def _apply(torch, block, traced):
    import functools

    import torch.utils.checkpoint

    more, names = {}, {"torch": torch}
    exec("\n".join([*_FROZEN, *_UNTRACED]), names)
    if any(isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in block.modules()):
        more["context_fn"] = names["frozen_statistics"](block)
    function = names["checkpointed"] if traced else torch.utils.checkpoint.checkpoint
    block.forward = functools.partial(function, block.forward, use_reentrant=False, **more)


def _own_method(root):
    """The method by which a model of transformers does it itself, or None."""
    if not getattr(root, "supports_gradient_checkpointing", False):
        return None
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
    return next((name for name in names if hasattr(root, name)), None)


def _modules_at(place, frame):
    """[(name, module by weak reference)] of the modules that the statement at a place names."""
    import torch

    text = rewrite.source_at(place)
    calls = text.calls_at(place["line"]) if text is not None else ()
    names = {code.dotted(node) for node in ast.walk(text.statement(calls[0]))} - {None} if calls else ()
    values = [(name, hooks.value_of(frame, name)) for name in sorted(names)]
    return [(name, weakref.ref(value), {id(part) for part in value.modules()}) for name, value in values if isinstance(value, torch.nn.Module)]


def _name_of(root, named):
    """How the program calls a module at a place, given the modules that it has names for there (_modules_at); or None."""
    for name, reference, parts in named:
        for path, module in reference().named_modules() if reference() is not None and id(root) in parts else ():
            if module is root:
                return _join(name, path)
    return None


def _before_loops(text, statement, name):
    """The outermost loop around a statement in which nothing binds the name or what it belongs to: a loop that makes an optimizer for each of
    several models would wrap a block in each of its rounds. None where a loop makes models whose names cannot be read."""
    parts = name.partition("[")[0].split(".")
    owners = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    while True:
        loop = text.above(statement, *code.LOOPS)
        if loop is None:
            return statement
        nodes = list(ast.walk(loop))
        if owners & {code.dotted(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)}:
            return statement
        if any(isinstance(node, ast.Call) and (code.dotted(node.func) or "").split(".")[-1] in _ATTACHES for node in nodes):
            return None
        statement = loop


def _join(name, path):
    text = name
    for part in path.split(".") if path else ():
        text += "[%s]" % part if part.isdigit() else "." + part
    return text


def _ordinal(number):
    return {2: "second", 3: "third"}.get(number, "%d-th" % number)
