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
import sys
import weakref

from _tonnage_guest import origin

from . import accumulate_patch, arguments, drawn, held_back, hooks, loaders, losses, pieces, split, table, turns, zeroing


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
        self.start = None  # (turns, batches, pieces) before the first backward pass
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
        self.draws = drawn.Draws()
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
        change.later.append(lambda: accumulate_patch.make(self))

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
            self.draws.fetched()

    def is_last(self):
        return self.piece is None or self.piece.last

    # ---- the loop ----

    def is_due(self, pace):
        """(whether a step() at this piece updates, whether that is after whole batches)."""
        interval = pace.interval(self.turns, self.used)
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
            if turns.is_inside():
                pace.see_count(self.used, self.piece.first)
            decided[optimizer], whole = self.is_due(pace)
            interval = pace.interval(self.turns, self.used)
            if interval > 0:
                pace.intervals[interval] += 1
            pace.called, pace.piece = self.turns, self.used
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
            self.start = self.turns - 1, self.finished - self.piece.last, self.used - 1
        for name in self.draws.of_batch(len(self.piece.samples)):
            arguments.say(self.change, _DRAWN % name)
        if self.piece.again:
            self.change.weaken(table.DIFFERENT)
            arguments.say(self.change, _AGAIN)
        return None if getattr(tensors, "_tonnage_divided", False) else self.divide(tensors)

    def divide(self, loss):
        """A part of a mean, or None for what is no tensor or stays."""
        import torch

        if self.piece is None or not isinstance(loss, torch.Tensor):
            return None
        ignored = losses.ignored_target(loss.grad_fn) if self.divided else None
        if ignored is not None:
            arguments.say(self.change, _IGNORED % ignored)
        if losses.is_sum(loss.grad_fn):
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


_ANEW = "Each batch comes from an iterator of its own, which begins with the same samples: in pieces these are fewer, which is another training."
_IGNORED = ("The loss is a mean over the targets that are not %d (ignore_index): where pieces hold unequal numbers of them, these weigh a "
            "little differently.")
_DRAWN = "The program draws something once per batch with %s, as Mixup does, for example: now each piece draws its own."
_AGAIN = ("The program uses a model again after its update within the same batch: pieces see it without that update, which is "
          "another training.")
_WORDS = {
    "backward": "backward: the loss is divided by the number of pieces",
    "step": "only after the last piece of a batch",
    "zero_before": "only before the first piece of a batch",
    "zero_after": "only after the update",
}


def draws(sampler):
    """True for a sampler of batches whose batches are made up of random samples."""
    import torch

    return isinstance(getattr(sampler, "sampler", None), torch.utils.data.RandomSampler)
