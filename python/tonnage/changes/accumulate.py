# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: the same batches, handed out in k pieces, with one update for all pieces of a batch.

In a program with a loop of its own the loader gives each batch in pieces. Only the last piece's step() updates;
zero_grad(), clipping, gradient scalers and schedulers follow it. A program that accumulates by itself, and calls
step() after n batches, calls it after n pieces now: an update comes after the pieces of n whole batches, as before.
A loss that is a mean is divided by the number of pieces (exactly: by the ratio of the batch to the piece, which
matters for a last batch that is smaller); a loss that is a sum stays, unless it is divided by the size of what it sums. transformers and Lightning do it themselves
and are told to.

Means over something else than samples (tokens that are not ignored) weigh the pieces a little differently. Batch
normalisation sees smaller batches: that changes the training.
"""

import ast
import itertools
import operator
import sys
import weakref

from _tonnage_guest import origin

from . import arguments, code, held_back, hooks, loaders, pieces, rewrite, split, table, turns, zeroing
from .source import Conflict

_MEAN, _SUM = 1, 2  # torch's numbers of reduction="mean" and "sum"
_IGNORED_BY_DEFAULT = -100  # of cross_entropy: mostly no target is it
_DEPTH = 8  # operations behind a loss that are looked at
_STEP, _ZERO = "== 0", "== 1"


def install(change):
    """value: k, the number of pieces."""
    if not (change.value or "").isdigit() or int(change.value) < 2:
        change.cannot("needs the number of pieces of a batch: accumulate=4")
        return
    _Accumulation(change, int(change.value)).install()


def edit(change, source):
    """Batches that the program draws itself; averages of the model that it makes in a loop of its own, and loops that fetch batches
    themselves."""
    if change.why_not is not None:
        return
    owner = _running[-1] if _running else None  # none: the survey only asks whether there is anything to edit
    if split.edit(change, source, owner.pieces if owner else 2):
        if owner:
            owner.is_split(source)
        return
    if owner:
        held_back.watch(change, source, _running[-1].is_last)
        turns.watch(change, source, _running[-1])
        zeroing.watch(change, source, _running[-1])


_running = []  # what install() has made


class _Accumulation:
    def __init__(self, change, pieces):
        self.change = change
        self.pieces = pieces
        self.piece = None  # the piece that the program works on
        self.ahead = None  # the piece after it, where somebody fetches ahead
        self.used = self.finished = 0  # pieces and whole batches handed out, the present one included
        self.backwards = 0  # backward passes, of pieces
        self.turns = 0  # of the program's loop: pieces, but those for which it was given the value before again (turns.py)
        self.is_repeat = False  # the next piece is such a one
        self.start = None  # (turns, batches) before the first backward pass
        self.words = None  # that were said of the loop
        self.whole = True  # each update came with the last piece of a batch
        self.paces = weakref.WeakKeyDictionary()  # optimizer -> Pace
        self.sites = {}  # what -> places
        self.loop = None  # the code of the function that goes backward
        self.loaders = []  # (place, batch size) where loaders of loops of the program's own were made
        self.looked = weakref.WeakKeyDictionary()  # sampler of which one batch is being looked at -> the size of its batches
        self.has_small = False  # a loader that the same call has made has fewer samples than pieces
        self.divided = True
        self.split = set()  # files in which what reads a batch runs once for each piece (split.py)
        self.told = []  # what trainers were told
        self.schedules = held_back.Schedules()
        self.lengths = turns.Lengths(pieces)
        self.sees = weakref.WeakKeyDictionary()  # optimizer -> {id of a model: whether it has a parameter of the optimizer's}

    def install(self):
        from _tonnage_guest import events

        change, guarded = self.change, self.change.guarded
        _running.append(self)
        hooks.on_optimizer(guarded(self.schedules.made))
        events.call_began.subscribe(guarded(self.called))
        loaders.watch(guarded(self.use))
        loaders.watch_looks(guarded(self.use_for_a_look))
        loaders.watch_evaluation(guarded(self.use_beside))
        hooks.on_length(guarded(self.lengths.asked))
        hooks.on_batch(guarded(self.batch))
        hooks.on_backward(guarded(self.backward))
        hooks.on_scale(guarded(self.divide))
        hooks.skip_step(guarded(self.skip_step))
        hooks.skip_zero_grad(guarded(self.skip_zero_grad))
        hooks.skip_around_step(guarded(self.skip_around_step))
        hooks.watch_training_mode()
        arguments.hugging_face(change, self.for_hugging_face)
        arguments.lightning(change, self.for_lightning)
        held_back.watch_what_sees_pieces(change)
        change.later.append(self.make_patch)

    # ---- trainers ----

    def for_hugging_face(self, fields):
        size = fields.per_device_train_batch_size
        if size % self.pieces:
            self.change.cannot("a batch of %d does not divide by %d" % (size, self.pieces))
            return {}
        steps = fields.gradient_accumulation_steps or 1
        if (size, steps) in self.told:
            return {}  # a copy of what was changed already
        self.told.append((size // self.pieces, steps * self.pieces))
        return {"per_device_train_batch_size": size // self.pieces,
                "gradient_accumulation_steps": steps * self.pieces}

    def for_lightning(self, keywords):
        present = keywords.get("accumulate_grad_batches", 1)
        if not isinstance(present, int):
            self.change.cannot("accumulate_grad_batches is no number here")
            return {}
        return {"accumulate_grad_batches": present * self.pieces}

    # ---- batches that the program draws ----

    def is_split(self, source):
        """The text of a file cuts its batches: loaders stay as they are."""
        self.split.add(source.path)
        self.change.effect()
        arguments.say(self.change, "Cut each batch into %d pieces where it is used, and divide the loss by %d." % (self.pieces, self.pieces))

    # ---- loaders ----

    def use_for_a_look(self, loader, place):
        """One batch of a loader is about to be looked at: with the patch it is a piece, too, if the loader feeds training."""
        size = loaders.size_of(loader)
        if isinstance(size, int) and size > 1 and size % self.pieces == 0 and not self.split:
            self.looked[loader.batch_sampler] = size
            loader.batch_sampler.batch_size = size // self.pieces

    def use(self, loader, place):
        """A loader that feeds training is about to be used."""
        size = loaders.size_of(loader)
        if not isinstance(size, int) or size < 2 or self.split:
            return
        if size % self.pieces:
            self.change.cannot("a batch of %d does not divide by %d" % (size, self.pieces))
            return
        self.change.note(place, "DataLoader: a batch of %d comes in %d pieces" % (size, self.pieces))
        if arguments.is_managed(sys._getframe(1)) == "lightning":
            loader.batch_sampler.batch_size = size // self.pieces
            written = loaders.edit_size(self.change, place, size, self.piece_text)
        else:
            object.__setattr__(loader, "batch_sampler", pieces.Batches(loader.batch_sampler, self.pieces))
            if (place, size) not in self.loaders:
                self.loaders.append((place, size))
            written = loaders.size_text(place, size)
        arguments.say(self.change, "Set the DataLoader's batch_size to %s." % self.piece_words(size, written))

    def use_beside(self, loader, place):
        """A loader of an evaluation is about to be used: where the call that made it has made one that feeds training, the patch sets
        the size of both."""
        size = loaders.size_of(loader)
        if place not in [made for made, _ in self.loaders] or not isinstance(size, int) or isinstance(size, bool):
            return
        self.has_small |= size < self.pieces
        loader.batch_sampler.batch_size = max(1, size // self.pieces)
        self.change.note(place, "DataLoader: evaluated in batches of %d, %d before" % (loader.batch_sampler.batch_size, size))
        arguments.say(self.change, "The same call makes loaders for evaluation, whose batches are smaller then, too.")

    def piece_text(self, node, text):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return str(node.value // self.pieces)
        simple = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        piece = "%s // %d" % (text if simple else "(%s)" % text, self.pieces)
        return "max(1, %s)" % piece if self.has_small else piece

    def piece_words(self, size, written):
        if written and not written.isdigit():
            return "%s // %d" % (written, self.pieces)
        return str(size // self.pieces)

    def batch(self, iterator, there, frame):
        """A batch was fetched, or the epoch has ended."""
        sampler, chunks = getattr(iterator, "_index_sampler", None), getattr(iterator, "_sampler_iter", None)
        if self.looked and sampler in self.looked:
            sampler.batch_size = self.looked.pop(sampler)
        if not isinstance(chunks, pieces.Chunks):
            return
        if chunks.continues and not draws(sampler):
            self.change.weaken(table.DIFFERENT)
            arguments.say(self.change, _ANEW)
        fetched = chunks.fetched() if there else None
        if frame.f_globals.get("__name__", "").startswith("accelerate."):
            # accelerate fetches one batch more before it hands out the one before
            self.piece, self.ahead = self.ahead, fetched
        else:
            self.piece = fetched
        if self.piece is None:
            self.check_rest()
        else:
            self.used += 1
            self.turns += not self.is_repeat
            self.is_repeat = False
            self.finished += self.piece.last
            self.schedules.piece(self.piece.first, frame)

    def is_last(self):
        return self.piece is None or self.piece.last

    # ---- the loop ----

    def is_due(self, pace):
        """(whether a step() at this piece updates, whether that is after whole batches)."""
        interval = self.turns - pace.called
        own = pace.batches(interval)
        early = 0 < interval < own  # a rest at the end of an epoch: the program asks for an update of it
        if self.finished - pace.updated < own and not early:
            return False, True
        if self.piece.last:
            return self.finished > pace.updated, True
        # No later call of this batch falls on its last piece.
        return not early and self.piece.left % own != 0, False

    def new_pace(self):
        return pieces.Pace(*self.start or ())

    def decide(self, optimizer):
        """Whether a step() of the program updates; the same for every call that belongs to a piece."""
        decided = self.piece.decided
        if optimizer not in decided:
            pace = self.paces.setdefault(optimizer, self.new_pace())
            decided[optimizer], whole = self.is_due(pace)
            if self.turns > pace.called:
                pace.intervals[self.turns - pace.called] += 1
            pace.called = self.turns
            self.whole &= self.piece.last
            if decided[optimizer]:
                pace.updated = self.finished
                if not whole:
                    self.change.weaken(table.DIFFERENT)
        return decided[optimizer]

    def check_rest(self):
        """An epoch that ends between two updates: whether the program made one of the rest is not known, but where its loop
        fetches batches itself, and an epoch is no end."""
        if turns.are_given_again():
            return
        for pace in self.paces.values():
            if 0 < self.finished - pace.updated < pace.batches():
                self.change.weaken(table.DIFFERENT)

    def backward(self, tensors, frame):
        import torch

        if self.piece is None or not isinstance(tensors, torch.Tensor):
            return None
        self.see("backward", frame)
        self.backwards += 1
        if self.start is None:
            self.start = self.turns - 1, self.finished - self.piece.last
        if self.piece.again:
            self.change.weaken(table.DIFFERENT)
            arguments.say(self.change, _AGAIN)
        return None if getattr(tensors, "_tonnage_divided", False) else self.divide(tensors)

    def divide(self, loss):
        """A part of a mean, or None for what is no tensor or stays."""
        import torch

        if self.piece is None or not isinstance(loss, torch.Tensor):
            return None
        ignored = ignored_target(loss.grad_fn) if self.divided else None
        if ignored is not None:
            arguments.say(self.change, _IGNORED % ignored)
        if is_sum(loss.grad_fn):
            self.divided = False
            return None
        return loss / self.piece.ratio if self.piece.ratio > 1 else None

    def called(self, module, args, kwargs, frame):
        """A model is called: with parameters that this piece should have updated already, it computes something else than
        the program does, where a backward pass follows (a discriminator in the loss of a generator)."""
        import torch

        piece = self.piece
        if module is None or piece is None or piece.last or not piece.decided or piece.again or not torch.is_grad_enabled():
            return
        for optimizer in piece.decided:
            known = self.sees.setdefault(optimizer, {})
            if id(module) not in known:
                own = {id(each) for group in optimizer.param_groups for each in group["params"]}
                known[id(module)] = any(id(each) in own for each in module.parameters())
            piece.again |= known[id(module)]

    def skip_step(self, optimizer, frame):
        if self.piece is None:
            return None
        self.see("step", frame)
        if self.decide(optimizer):
            self.change.effect()
            return None
        return True

    def skip_zero_grad(self, called, frame):
        if self.piece is None:
            return None
        owner, decided = called[0], self.piece.decided
        if hasattr(owner, "param_groups") and owner not in decided:
            owner = getattr(owner, "optimizer", owner)  # of Fabric's wrapper
        tried = owner in decided if hasattr(owner, "param_groups") else bool(decided)
        self.see("zero_after" if tried else "zero_before", frame)
        return None if self.zeroes(owner, tried) else True

    def zeroes(self, owner, tried):
        """Whether gradients are cleared now. tried: the program has called step() in this piece."""
        decided = self.piece.decided
        if tried:
            return decided[owner] if owner in decided else any(decided.values())
        return self.piece.first and not self.is_within(owner)

    def clears_by_hand(self, place):
        """Whether a loop of the program's own clears gradients now (zeroing.py)."""
        if self.piece is None:
            return True
        tried = bool(self.piece.decided)
        self.see_at("zero_after" if tried else "zero_before", place)
        return self.zeroes(None, tried)

    def is_within(self, owner):
        """Whether batches before the present one wait for their update."""
        before = self.finished - self.piece.last
        paces = [self.paces[owner]] if owner in self.paces else self.paces.values()
        return any(0 < before - pace.updated < pace.batches() for pace in paces)

    def skip_around_step(self, called, frame):
        if self.piece is None or frame.f_globals.get("__name__", "").startswith("torch."):
            return None
        self.see("step", frame)
        if self.schedules.counts_pieces(called, self.finished - self.piece.last):
            self.change.weaken(table.DIFFERENT)
            arguments.say(self.change, held_back.COUNTED % (origin.short(hooks.place(frame)), self.pieces))
        for optimizer in called[1:]:
            if hasattr(optimizer, "param_groups"):
                self.decide(optimizer)
        decided = self.piece.decided
        if decided:
            honoured = any(decided.values())
        elif hasattr(called[0], "optimizer"):  # a scheduler that is stepped with each batch
            honoured = self.piece.last
        else:
            honoured = any(self.is_due(pace)[0] for pace in list(self.paces.values()) or [self.new_pace()])
        return None if honoured else True

    def see(self, what, frame):
        place = self.in_loop(what, frame) or hooks.place(frame)
        if place is not None:
            self.see_at(what, place)

    def see_at(self, what, place):
        rows = self.sites.setdefault(what, [])
        if place not in rows:
            rows.append(place)
            self.change.note(place, _WORDS[what])

    def in_loop(self, what, frame):
        """Where the function that goes backward has called what in the end makes a step; None where it has not."""
        if what == "backward":
            found = hooks.frame_of_user(frame)
            self.loop = found.f_code if found is not None else None
            return None
        while frame is not None and self.loop is not None:
            if frame.f_code is self.loop:
                return hooks.place(frame)
            frame = frame.f_back
        return None

    # ---- the patch ----

    def make_patch(self):
        """Edits the loops that were seen, where all of what was seen stands in loops with a backward pass each; else the words must do."""
        if not self.loaders or "backward" not in self.sites or "step" not in self.sites:
            return
        scale = ", divide the loss by %d" % self.pieces if self.divided else ""
        own = {pace.batches() for pace in self.paces.values()}
        words = "Update only every %d micro-batches%s, and zero the gradients after the update." % (
            self.pieces * max(own, default=1), scale)
        self.change.how = self.change.how.replace(self.words or words, words)
        self.words = words
        arguments.say(self.change, words)
        for name in turns.counters(self.sites["backward"][0]):
            arguments.say(self.change, "%s counts micro-batches then, %d for each batch: mind what it ends or triggers." % (name, self.pieces))
        self.change.patches.clear()
        try:
            if len(own) > 1:
                raise _NotOneLoop()
            for place, size in self.loaders:
                if loaders.edit_size(self.change, place, size, self.piece_text) is None:
                    raise _NotOneLoop()
            self.lengths.edit(self.change, [place for place, _ in self.loaders])
            self.edit_loops(self.pieces * max(own, default=1))
        except (Conflict, _NotOneLoop):
            self.change.patches.clear()

    def edit_loops(self, every):
        steps = [self.step_at(place) for place in self.sites["backward"]]
        if len({_region(step) for step in steps}) < len(steps):
            raise _NotOneLoop()
        left = {what: list(rows) for what, rows in self.sites.items() if what != "backward"}
        for step in steps:
            own = {what: [place for place in rows if self.belongs(place, step)] for what, rows in left.items()}
            left = {what: [place for place in rows if place not in own[what]] for what, rows in left.items()}
            self.edit_loop(step, own, every)
        if any(left.values()) or any(path not in {step.source.path for step in steps} for path in held_back.averages()):
            raise _NotOneLoop()

    def belongs(self, place, step):
        """Whether what was seen at a place is of this loop: it stands in it, or in the function that has no other."""
        text, loop = step.source, _region(step)
        calls = text.calls_at(place["line"]) if place["file"] == text.path else ()
        if not calls:
            return False
        return _stands_in(text, calls[0], loop) or not any(
            _stands_in(text, calls[0], other.loop) for other in code.steps(text) if other.loop is not None)

    def step_at(self, place):
        """The backward pass at a place, in a loop of its function's, or in a function that is called with each piece."""
        text = rewrite.source_at(place)
        found = next((step for step in code.steps(text) if step.call.lineno <= place["line"] <= step.call.end_lineno), None) if text is not None else None
        is_known = found is not None and (found.loop is not None or _counter_of(found, "") is not None)
        once_each = 0 <= self.used - self.backwards <= 1  # a program may be ended within its last one
        if not is_known or (found.loop is None and (not once_each or turns.are_given_again())):
            raise _NotOneLoop()
        return found

    def edit_loop(self, step, sites, every):
        text, region = step.source, _region(step)
        edits, name = self.change.edits(text), code.free_name(text, "micro_step")
        if turns.is_given_again(text, step.loop):
            turns.edit_head(edits, text, step.loop, self.pieces)
        if self.divided and step.loss is not None:
            whole = text.of(step.loss)
            simple = isinstance(step.loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            divided = "%s / %d" % (whole if simple else "(%s)" % whole, self.pieces)
            edits.replace(step.loss, "(%s)" % divided if step.loss is step.call.func.value else divided)
        guards = {statement: what for what in ("zero_before", "step", "zero_after")
                  for statement in self.statements(text, region, sites.get(what, ()))}
        averages = held_back.averages().get(text.path, ())
        if guards or averages:
            name = _count(edits, step, name)
        for average in averages:
            if not _stands_in(text, average, region):
                raise _NotOneLoop()
            self.guard(edits, text, average, "if %s %% %d %s:" % (name, every, _STEP))
        for statement, what in guards.items():
            # what zeroes in front of the backward pass belongs to a batch's first piece, whatever was fetched by then
            first = what != "step" and statement.lineno < step.call.lineno
            self.guard(edits, text, statement, "if %s %% %d %s:" % (name, every, _ZERO if first else _STEP))

    def statements(self, text, loop, places):
        found, loops = [], zeroing.loops(text)
        for place in places:
            calls = text.calls_at(place["line"])
            statement = text.statement(calls[0]) if calls else None
            if statement is not None and not _stands_in(text, statement, loop) and self.is_behind(text, statement, loop):
                continue
            if (not isinstance(statement, ast.Expr) and statement not in loops) or not _stands_in(text, statement, loop):
                raise _NotOneLoop()
            if statement not in found:
                found.append(statement)
        return sorted(found, key=lambda node: node.lineno)

    def is_behind(self, text, statement, loop):
        """An update beside a loop that is given its values again comes after whole batches by itself."""
        return self.whole and turns.is_given_again(text, loop) and text.scope(statement) is text.scope(loop)

    def guard(self, edits, text, statement, header):
        first, last, before = edits.wraps[-1] if edits.wraps else (None, None, None)
        if before == header and last == statement.lineno - 1 and first in [each.lineno for each in text.block(statement)]:
            edits.wraps[-1] = (first, statement.end_lineno, header)
        else:
            edits.wrap([statement], header)


_ANEW = "Each batch comes from an iterator of its own, which begins with the same samples: in pieces these are fewer, which is another training."
_IGNORED = ("The loss is a mean over the targets that are not %d (ignore_index): where pieces hold unequal numbers of them, these weigh a "
            "little differently.")
_AGAIN = ("The program uses a model again after its update within the same batch: pieces see it without that update, which is "
          "another training.")


class _NotOneLoop(Exception):
    """What was seen does not stand in loops with a backward pass each."""


def _region(step):
    """What one piece runs through: the loop's body, or the function that is called with each."""
    return step.loop or step.source.scope(step.statement)


def _counter_of(step, name):
    """What a function that is called with each piece counts them in, an attribute of its object or of its own; None where neither is known."""
    text, function = step.source, step.source.scope(step.statement)
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    outer = text.parents.get(function)
    if isinstance(outer, ast.ClassDef):
        return "%s.%s" % (function.args.args[0].arg, name) if function.args.args else None
    return "%s.%s" % (function.name, name) if isinstance(outer, ast.Module) else None


def _count(edits, step, name):
    """Writes what counts the pieces, and returns its name."""
    if step.loop is not None:
        edits.insert_before(step.loop, "%s = 0" % name)
        edits.insert_before(step.loop.body[0], "%s += 1" % name)
        return name
    body, counter = _region(step).body, _counter_of(step, name)
    first = body[1] if ast.get_docstring(_region(step), clean=False) is not None and len(body) > 1 else body[0]
    owner, _, attribute = counter.rpartition(".")
    edits.insert_before(first, '%s = getattr(%s, "%s", 0) + 1' % (counter, owner, attribute))
    return counter


_WORDS = {
    "backward": "backward: the loss is divided by the number of pieces",
    "step": "only after the last piece of a batch",
    "zero_before": "only before the first piece of a batch",
    "zero_after": "only after the update",
}


def _stands_in(text, node, loop):
    while node is not None and node is not loop:
        node = text.parents.get(node)
    return node is loop


def draws(sampler):
    """True for a sampler of batches whose batches are made up of random samples."""
    import torch

    return isinstance(getattr(sampler, "sampler", None), torch.utils.data.RandomSampler)


def is_sum(node):
    """True when a loss is a sum over the batch: reduction="sum", or .sum() as the last operation, and not divided by how much it sums."""
    _, sums, by_size = weight(node)
    return sums and not by_size


def weight(node):
    """(share, sums, by size) of a loss: what it is multiplied with, 0.25 of `(loss / 4).backward()`, None where a tensor says it;
    whether it is a sum over the batch; and whether that is divided by the size of what it sums, which makes it a mean."""
    share, divisors, last = 1.0, [], True
    for _ in range(_DEPTH):
        name, reduction = type(node).__name__, getattr(node, "_saved_reduction", None)
        if reduction is not None or name.startswith("Sum"):
            sums = reduction in (None, _SUM)
            return share, sums, sums and not _sizes_of(node).isdisjoint(divisors)
        factor = _factor(node) if name.startswith(("Mul", "Div")) else None
        if factor is not None:
            share = share * factor if share is not None else None
            if name.startswith("Div"):
                divisors.append(round(1 / factor))
        elif name.startswith("Div"):
            return (None if last else share), False, False  # by what was summed with it: a mean with weights, or over what is not masked
        elif name.startswith("Mul"):
            share = None if last else share
        elif name.startswith(("Neg", "Add", "ToCopy", "Alias", "Clone")):
            last = False
        else:
            break
        node = node.next_functions[0][0] if node.next_functions else None
    return share, False, False


def ignored_target(node):
    """The ignore_index of a loss that is a mean over what is left, where the program has chosen one; else None."""
    for _ in range(_DEPTH):
        index = getattr(node, "_saved_ignore_index", None)
        if index is not None:
            index -= (index >> 63) << 64  # torch hands out 64 bits without a sign
            return index if index != _IGNORED_BY_DEFAULT and node._saved_reduction == _MEAN else None
        node = node.next_functions[0][0] if node is not None and node.next_functions else None
    return None


def _factor(node):
    """The number that a node multiplies with; None for a tensor of the card, or of several numbers."""
    by = getattr(node, "_saved_other", None)
    if by is None or by.device.type != "cpu" or by.dim() or not float(by):
        return None
    return 1 / float(by) if type(node).__name__.startswith("Div") else float(by)


def _sizes_of(node):
    """Of what a node sums: its rows, those times the next dimension, and so on to all of its elements."""
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    if sizes is None:
        summed = getattr(node, "_saved_self", None)
        sizes = summed.shape if summed is not None else ()
    return {size for size in itertools.accumulate((int(size) for size in sizes), operator.mul) if size > 1}
