# SPDX-License-Identifier: Apache-2.0
"""Which DataLoaders feed training and which do not, and where they were made.

A loader is looked at when it is first used. It feeds training when the program has an optimizer, builds graphs at
that moment and has not just called eval(). In a program without an optimizer every loader counts. Loaders that a
trainer of transformers makes are the trainer's: its arguments rule them. One batch that is fetched to look at it, as notebooks do, is neither.
"""

import ast
import sys
import weakref

from _tonnage_guest import frames

from . import arguments, code, hooks, rewrite, source

_FRAMES = 30
_TRAINING, _EVALUATION, _LOOK = range(3)
_made = weakref.WeakKeyDictionary()  # loader -> place
_fed = weakref.WeakSet()  # samplers of batches that have fed training: what is evaluated on them later is none of an evaluation's
_by_sampler = weakref.WeakKeyDictionary()  # sampler of batches -> place of the loader that was made first
_installed = False
_optimizers = 0


def watch(callback):
    """callback(loader, place) for each loader that feeds training, before it gives its first batch."""
    _watch(callback, _TRAINING)


def watch_evaluation(callback):
    """callback(loader, place) for each loader that feeds what is no training in a program that trains, before it gives
    its first batch."""
    _watch(callback, _EVALUATION)


def watch_looks(callback):
    """callback(loader, place) for each loader of which one batch is fetched outside of any loop."""
    _watch(callback, _LOOK)


def _watch(callback, wanted):
    global _installed
    if not _installed:
        _installed = True
        hooks.on_loader(_note)
        hooks.on_optimizer(_note_optimizer)
    judged = weakref.WeakSet()  # samplers of batches that this one has looked at

    def epoch(loader, frame):
        sampler = loader.batch_sampler
        if sampler is None or sampler in judged or _is_hugging_faces(loader, frame):
            return
        kind = _LOOK if _is_looked_at(frame) else _TRAINING if feeds_training(frame) else _EVALUATION
        if kind == _TRAINING:
            _fed.add(sampler)
        if kind == wanted and (kind != _EVALUATION or sampler not in _fed):
            judged.add(sampler)
            callback(loader, place_of(loader))
            judged.add(loader.batch_sampler)  # the callback may have put another there
            if kind == _TRAINING:
                _fed.add(loader.batch_sampler)

    hooks.on_epoch(epoch)


def _is_looked_at(frame):
    try:
        return _is_a_look(frame)
    except Exception:
        return False  # a frame whose text is not what runs


def _is_a_look(frame):
    """True where this use of a loader is for one batch alone: `next(iter(loader))`, or `batches = iter(loader)` with `next(batches)` in the same function,
    and no loop of the program's is running."""
    place = hooks.place(frame)
    text = rewrite.source_at(place)
    call = next((call for call in text.calls_at(place["line"]) if code.last(call.func) == "iter"), None) if text is not None else None
    if call is None or not _fetches_once(text, call):
        return False
    while frame is not None:
        if frames.kind(frame.f_code, frame.f_globals) is frames.USER:
            file, line = frames.site(frame)
            text = rewrite.source_at({"file": file})
            if text is None or any(loop.lineno <= line <= loop.end_lineno for loop in text.all(*code.LOOPS)):
                return False
        frame = frame.f_back
    return True


def _fetches_once(text, call):
    parent = text.parents.get(call)
    if isinstance(parent, ast.Call) and code.last(parent.func) == "next":
        return True
    name = code.target_of(text, call)
    uses = [node for node in text.all(ast.Name) if node.id == name and isinstance(node.ctx, ast.Load)]
    return bool(uses) and all(_is_fetched_once(text, node, text.scope(call)) for node in uses)


def _is_fetched_once(text, node, scope):
    call = text.parents.get(node)
    fetches = isinstance(call, ast.Call) and code.last(call.func) == "next" and node in call.args
    return fetches and text.scope(call) is scope and text.above(call, *code.LOOPS) is None


def size_asked(change):
    """The number of samples that the change's value asks for; None when it is none, and the change then says so."""
    if (change.value or "").isdigit() and int(change.value) > 0:
        return int(change.value)
    change.cannot("needs a number of samples: %s=4" % change.id)
    return None


def resizer(change, size):
    """A callback for the two above that gives a loader batches of so many samples."""

    def use(loader, place):
        old = size_of(loader)
        if not isinstance(old, int) or isinstance(old, bool) or old == size:
            return
        loader.batch_sampler.batch_size = size
        object.__setattr__(loader, "batch_size", size if loader.batch_size is not None else None)
        change.note(place, "DataLoader: batch_size %d becomes %d" % (old, size))
        change.effect()
        written = edit_size(change, place, old, lambda node, text: str(size))
        words = " (now %s)" % written if written and not written.isdigit() else ""
        arguments.say(change, "Set the DataLoader's batch_size to %d%s." % (size, words))

    return use


def _note(loader, frame):
    place = hooks.place(frame)
    _made[loader] = (place, arguments.is_managed(frame))
    if loader.batch_sampler is not None:
        try:
            _by_sampler.setdefault(loader.batch_sampler, place)
        except TypeError:
            pass  # a list of batches takes no weak reference


def _note_optimizer(optimizer, frame):
    global _optimizers
    _optimizers += 1


def place_of(loader):
    """Where a loader was made."""
    try:
        return _by_sampler.get(loader.batch_sampler) or _made.get(loader, (None, None))[0]
    except TypeError:
        return _made.get(loader, (None, None))[0]


def _is_hugging_faces(loader, frame):
    return _made.get(loader, (None, None))[1] == "hf" or arguments.is_managed(frame) == "hf"


def has_optimizer():
    """True once the program has made an optimizer."""
    return _optimizers > 0


def feeds_training(frame):
    """True when what is being done now is training, or the program never trains."""
    import torch

    if "lightning" in sys.modules or "pytorch_lightning" in sys.modules:
        known = _lightning_says(frame)
        if known is not None:
            return known
    return _optimizers == 0 or (torch.is_grad_enabled() and hooks.training)


def _lightning_says(frame):
    for _ in range(_FRAMES):
        if frame is None:
            return None
        name = type(hooks.value_of(frame, "self")).__name__
        if name in ("_EvaluationLoop", "_PredictionLoop"):
            return False
        if name in ("_FitLoop", "_TrainingEpochLoop"):
            return True
        frame = frame.f_back
    return None


def size_of(loader):
    """The batch size of a loader, or None."""
    return getattr(loader.batch_sampler, "batch_size", None)


def edit_size(change, place, size, text_of):
    """The patch: `batch_size` of the loader that was made at a place becomes text_of(node, its present text), which is
    returned; None where it is not written there."""
    text, node = _size_node(place, size)
    if node is None:
        return None
    written = _written(text, node)
    new = text_of(ast.parse(written, mode="eval").body, written)
    if isinstance(text.parents.get(node), ast.keyword) and text.parents[node].arg is None:
        new = '{**%s, "batch_size": %s}' % (text.of(node), new)
    try:
        for each in [node] + _twins(text, node):
            change.edits(text).replace(each, new)
    except source.Conflict:
        return None
    return written


def _twins(text, node):
    """The same argument of calls that are written alike in the same function: what makes the loader anew for another epoch, which may not
    have been seen."""
    call = text.above(node, ast.Call)
    scope, written = text.scope(node), ast.dump(call)
    alike = [other for other in text.calls() if other is not call and text.scope(other) is scope and ast.dump(other) == written]
    return [_values(other)[_values(call).index(node)] for other in alike]


def _values(call):
    """What a call is given, in the order of the text."""
    return call.args + [word.value for word in call.keywords]


def size_text(place, size):
    """What the program has written for `batch_size` at a place, or None."""
    text, node = _size_node(place, size)
    return _written(text, node) if node is not None else None


def _written(text, node):
    """The text of a batch's size: of a node that is one, or that is handed on as `**words`."""
    word = text.parents.get(node)
    is_handed_on = isinstance(word, ast.keyword) and word.arg is None
    return '%s["batch_size"]' % text.of(node) if is_handed_on else text.of(node)


def _size_node(place, size):
    """Several loaders may be made on one line: a number says which one is meant, else there must be only one."""
    text, nodes = rewrite.source_at(place), []
    for call in text.calls_at(place["line"]) if text is not None else ():
        present = code.keyword(call, "batch_size")
        node = present.value if present is not None else call.args[1] if len(call.args) > 1 else _handed_on(text, call)
        if "Loader" in (code.last(call.func) or "") and node is not None:
            nodes.append(node)
    numbers = [node for node in nodes if isinstance(node, ast.Constant)]
    fitting = [node for node in numbers if node.value == size] or [node for node in nodes if node not in numbers]
    return text, fitting[0] if len(fitting) == 1 else None


def _handed_on(text, call):
    """`words` of `DataLoader(data, **words)`, where these are what the function was called with."""
    values = [word.value for word in call.keywords if word.arg is None]
    scope = text.scope(call)
    given = getattr(getattr(scope, "args", None), "kwarg", None)
    if len(values) == 1 and isinstance(values[0], ast.Name) and given is not None and given.arg == values[0].id:
        return values[0]
    return None
