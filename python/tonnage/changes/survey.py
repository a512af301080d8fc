# SPDX-License-Identifier: Apache-2.0
"""Facts of an unchanged program, from which the table tells what can be tried in it.

Asked for as `TONNAGE_CHANGES=survey`. What the program does is not changed: text that a change would edit is looked at
and forgotten, and probes look at what it keeps (keeps.py).
"""

import atexit
import importlib
import os
import sys
import weakref

from _tonnage_guest import events, fast_forward, origin, settle, unused
from _tonnage_guest.state import settings

from . import (arguments, blocks, command_line, config_files, constants, environment, hooks, keeps, library_calls, loaders, meaning, moving_state, options,
               reached, results, rewrite, source, table, train_mode)

_VALUES = {"kv_cache_limit": "1"}
_BETWEEN_TRAININGS = ("release_trainings", "unbind_trainings", "collect_trainings")  # tried where there are several, whatever came first


class _Facts:
    def __init__(self):
        self.backward = 0
        self.ranks = 1  # of the job, as they were when it trained
        self.modules = 0
        self.optimizers = {}
        self.batches = {}
        self.evaluation_batches = {}
        self.looks = {}  # batches of which one was fetched outside of any loop
        self.declared = {}  # library -> options of the program's command line, of its parser that can do most
        self.variables = {}  # of the environment
        self.options = {}  # of the command line: --batch 8
        self.blocks = 0
        self.block = None
        self.batch_norm = False
        self.calls_in_training_mode = 0
        self.moving_state = False  # a module of the model moves buffers in each forward pass
        self.eager_attention = False
        self.checkpointing_waits = False  # a model is trained in eval(), where what was configured does nothing
        self.evaluation_with_graph = 0
        self.training_arguments = False  # transformers'
        self.trainer = None  # "hf" or "lightning" when one of them makes the updates
        self.rewrites = set()
        self.keeps = results.Change("keeps", None, None)
        self.reached = results.Change("reached", None, None)
        self.loaders = []  # what data loaders hold of the computer's memory

    def own_options(self):
        """Options of the command line, of the library that can do most first, and what stands elsewhere: offers' arguments."""
        first, *others = sorted(self.declared.values(), key=lambda found: -len(meaning.by_role(found))) or [[]]
        return first, [*others, config_files.options(), list(self.variables.values()), *library_calls.options()]

    def offers(self):
        """Of constants, too. They forbid nothing: what the names of an option's author promise, those of a number may not mean."""
        first, others = self.own_options()
        return meaning.offers(first, [*others, *constants.options()], sorted(self.batches or self.looks))

    def unused_graphs(self):
        """["file:line"]: statements whose graphs no backward pass used; not those of evaluations that `no_grad` finds."""
        found_elsewhere = self.evaluation_with_graph or "no_grad" in self.rewrites
        return [origin.short({"file": file, "line": line}) for file, line, training in sorted(unused.places())
                if self.backward and not (found_elsewhere and not training) and rewrite.source(file) is not None]

    def at_most(self):
        """{change: bytes that it could save at most}, of those of which that is known."""
        known = {}
        for watched, module in ((self.keeps, keeps), (self.reached, reached)):
            for name, most in module.most().items() if watched.why_not is None else ():
                known[name] = min(most, known.get(name, most))
        return known

    def document(self):
        torch = sys.modules.get("torch")
        facts = {
            "cuda": bool(torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized()),
            "backward": self.backward,
            "last_news": {"step": settle.last_news(), "epoch": fast_forward.last_news()},
            "ranks": self.ranks,
            "modules": self.modules,
            "optimizers": sorted(self.optimizers),
            "batches": sorted(self.batches or self.looks),
            "batch_options": sorted(self.options.values()),
            "evaluation_batches": sorted(self.evaluation_batches),
            "blocks": self.blocks,
            "block": self.block,
            "batch_norm": self.batch_norm,
            "calls_in_training_mode": self.calls_in_training_mode,
            "moving_state": self.moving_state,
            "eager_attention": self.eager_attention,
            "checkpointing_waits": self.checkpointing_waits,
            "evaluation_with_graph": self.evaluation_with_graph,
            "unused_graphs": self.unused_graphs(),
            "training_arguments": self.training_arguments,
            "trainer": self.trainer,
            "trainings": _trainings(),
            "rewrites": sorted(self.rewrites),
            "at_most": self.at_most(),
            "loaders": self.loaders,
            "offers": self.offers(),
            "cuts_batches": meaning.forbids_accumulation(*self.own_options()),
            "command_line": sys.argv[1:],
            "wished": os.environ.get("TONNAGE_TRY", "").split(","),
            "places": {"optimizers": self.optimizers, "batches": self.batches or self.looks},
        }
        return {"facts": facts, "possible": table.possible(facts)}


def install(change):
    """Looks on."""
    facts = _Facts()
    trained, looked = weakref.WeakSet(), set()
    results.facts = facts.document
    for told in (settle, fast_forward):
        atexit.register(told.program_ended)  # before the facts are written for the last time

    def backward(tensors, frame):
        facts.backward += 1
        facts.ranks = max(facts.ranks, _ranks())
        facts.trainer = facts.trainer or arguments.is_managed(frame)
        change.effect()

    def optimizer(made, frame):
        facts.optimizers.setdefault(type(made).__name__, hooks.place(frame))

    def loader(used, place):
        if isinstance(loaders.size_of(used), int):
            facts.batches.setdefault(loaders.size_of(used), place)
            results.write_sometimes()

    def made(loader, frame):
        workers, ahead = loader.num_workers, loader.prefetch_factor
        row = {"workers": workers, "prefetch": bool(workers and ahead and ahead > 1), "pins": bool(loader.pin_memory)}
        if row not in facts.loaders:
            facts.loaders.append(row)

    def evaluation(used, place):
        if isinstance(loaders.size_of(used), int):
            facts.evaluation_batches.setdefault(loaders.size_of(used), place)
            results.write_sometimes()

    def look(used, place):
        if isinstance(loaders.size_of(used), int):
            facts.looks.setdefault(loaders.size_of(used), place)
            results.write_sometimes()

    def option(namespace, action, place):
        facts.options[command_line.option_of(action)] = getattr(namespace, action.dest)

    def declared(library, found):
        if len(meaning.by_role(found)) >= len(meaning.by_role(facts.declared.get(library, ()))):
            facts.declared[library] = found

    def variable(option):
        facts.variables.setdefault(option.name, option)

    def configurator(change, text):
        if os.path.abspath(sys.argv[0] or "") == text.path:
            found = options.configured(text.tree, _read)
            if found:
                declared("configurator", found)

    def moves(parts):
        facts.moving_state = True

    watched = moving_state.Watch(change, moves)

    def called(module, frame):
        import torch

        watched.called(module)
        if module.training:
            facts.calls_in_training_mode += 1
            trained.add(module)
        elif torch.is_grad_enabled() and module in trained:
            facts.evaluation_with_graph += 1
            reached.come_to("no_grad")
        if id(module) not in looked:
            looked.update(id(part) for part in module.modules())
            _look_at(facts, torch, module)
            results.write_sometimes()

    def trainer_arguments(fields):
        facts.training_arguments = True
        facts.batches.setdefault(fields.per_device_train_batch_size)
        facts.evaluation_batches.setdefault(fields.per_device_eval_batch_size)
        return {}

    hooks.on_torch(train_mode.watch)
    hooks.on_loader(change.guarded(made))
    hooks.on_backward(change.guarded(backward))
    hooks.on_optimizer(change.guarded(optimizer))
    loaders.watch(change.guarded(loader))
    loaders.watch_evaluation(change.guarded(evaluation))
    loaders.watch_looks(change.guarded(look))
    command_line.watch(change, option)
    options.watch(declared)
    environment.watch(variable)
    rewrite.add(results.Change("configurator", None, None), configurator)
    rewrite.add(results.Change("library_calls", None, None), library_calls.collect)
    rewrite.add(results.Change("constants", None, None), constants.collect)
    rewrite.add(facts.keeps, keeps.edit)
    hooks.before_forward(change.guarded(called))
    if not settings.history:  # else the hook itself keeps them for the snapshot
        events.call_began.subscribe(unused.call_began)
        events.call_made.subscribe(unused.call_made)
    arguments.hugging_face(change, trainer_arguments)
    for row in table.ROWS:
        _dry(facts, row)
    rewrite.add(facts.reached, reached.edit)


def _trainings():
    """How many there were, one after the other; one that is being set up as memory runs out counts."""
    from _tonnage_guest import trainings

    return trainings.count()


def _ranks():
    distributed = sys.modules.get("torch.distributed")
    joined = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if joined else 1


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError):
        return None


def _look_at(facts, torch, module):
    facts.modules += sum(1 for _ in module.modules())
    found = blocks.of(module)
    if len(found) > facts.blocks:
        facts.blocks, facts.block = len(found), type(found[0][1]).__name__
    norm = torch.nn.modules.batchnorm._BatchNorm
    facts.batch_norm = facts.batch_norm or any(isinstance(part, norm) and part.training for part in module.modules())
    facts.moving_state = facts.moving_state or moving_state.of(module) is not None
    facts.checkpointing_waits = facts.checkpointing_waits or train_mode.waits(module)
    config = getattr(module, "config", None)
    facts.eager_attention = facts.eager_attention or getattr(config, "_attn_implementation", None) == "eager"


def _dry(facts, row):
    """Lets a change that edits text do so, only to see whether it would."""
    trial = results.Change(row.id, _VALUES.get(row.id), row)
    module = importlib.import_module("." + table.module_of(row.id), __package__)
    if not hasattr(module, "edit"):
        return
    acts_by_text = not hasattr(module, "install") or row.id == "no_grad"  # what that does by itself, called() sees
    is_bounded = acts_by_text and row.id not in _BETWEEN_TRAININGS

    def look(change, text):
        if row.id in facts.rewrites and not is_bounded:
            return  # one place is enough to know
        try:
            module.edit(trial, text)
        except source.Conflict:
            pass
        printed, tried = trial.patches.pop(text.path, None), trial.trials.pop(text.path, None)
        if printed or tried:
            facts.rewrites.add(row.id)
        for edits in filter(None, (printed, tried)) if is_bounded else ():
            reached.would_change(text.path, row.id, edits)

    rewrite.add(trial, look)
