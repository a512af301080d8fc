# SPDX-License-Identifier: Apache-2.0
"""The pieces in which a loader hands out its batches (accumulate.py), and how often an optimizer is stepped meanwhile."""

import collections
import weakref


class Chunks:
    """Iterator over the index lists of pieces, those that are left of a batch first; `plan` says of each piece handed out what it is."""

    def __init__(self, batches, pieces, left=()):
        self.batches = iter(batches)
        self.pieces = pieces
        self.size = None  # of a full piece
        self.waiting = collections.deque(left)
        self.continues = bool(left)
        self.plan = collections.deque()
        self.used = None  # the piece that the program has fetched last

    def __iter__(self):
        return self

    def __next__(self):
        if not self.waiting:
            whole = list(next(self.batches))
            if self.size is None:
                self.size = max(1, -(-len(whole) // self.pieces))
            for start in range(0, len(whole), self.size):
                part = whole[start:start + self.size]
                left = -(-(len(whole) - start) // self.size) - 1
                self.waiting.append(Piece(part, len(whole) / len(part), start == 0, left))
        self.plan.append(self.waiting.popleft())
        return self.plan[-1].samples

    def fetched(self):
        """The piece that the program has fetched now, or None."""
        self.used = self.plan.popleft() if self.plan else None
        return self.used

    def rest(self):
        """The pieces that are left of a batch which the program has trained on: it may go on with another iterator."""
        left = self.used.left if self.used is not None and self.used.decided else 0
        return [*self.plan, *self.waiting][:left]


class Piece:
    """One piece of a batch as it is used."""

    def __init__(self, samples, ratio, first, left):
        self.samples = samples  # their indices
        self.ratio = ratio
        self.first = first
        self.left = left  # pieces of its batch that follow
        self.last = left == 0
        self.again = False  # a model is used after its step() was held back
        self.decided = weakref.WeakKeyDictionary()  # optimizer whose step() was called -> whether it updates


class Pace:
    """How an optimizer is stepped, counted in pieces and batches of the whole run."""

    def __init__(self, called=0, updated=0, piece=0):
        self.called = called  # turns of the loop there were at the last call of step()
        self.updated = updated  # batches there were at the last update
        self.piece = piece  # pieces there were at the last call of step()
        self.by_pieces = False  # step() is called by a count of its own, not by what the loop's turns say
        self.intervals = collections.Counter()  # turns between two calls of step() -> how often

    def interval(self, turns, used):
        """Since the last call of step(): turns, or pieces where the program counts these."""
        return used - self.piece if self.by_pieces else turns - self.called

    def see_count(self, used, is_first):
        """step() is called in a loop whose turns are given again for each piece: what goes by their values calls it in all pieces of a batch.
        accelerate's count of its own does not."""
        if not is_first and self.piece != used - 1 and not self.by_pieces:
            self.by_pieces = True
            self.intervals.clear()

    def batches(self, interval=None):
        """Batches that the program itself takes for an update: what it did most often, one more interval included."""
        seen = self.intervals + collections.Counter([interval] if interval else [])
        return max(seen, key=lambda n: (seen[n], n), default=1)


class Batches:
    """Stands for a sampler of batches and hands out pieces."""

    def __init__(self, batches, pieces):
        self.batches = batches
        self.pieces = pieces
        self.latest = None  # what was handed out last

    def __iter__(self):
        self.latest = Chunks(self.batches, self.pieces, self.latest.rest() if self.latest is not None else ())
        return self.latest

    def __len__(self):
        size = self.batches.batch_size
        piece = max(1, -(-size // self.pieces))
        full = -(-size // piece)
        whole = len(self.batches)
        try:
            rest = 0 if self.batches.drop_last else len(self.batches.sampler) % size
        except (AttributeError, TypeError):
            rest = 0
        return whole * full if not rest else (whole - 1) * full - (-rest // piece)

    def whole_batches(self):
        return len(self.batches)

    def __getattr__(self, name):
        if name in ("batches", "pieces", "latest"):
            raise AttributeError(name)
        return getattr(self.batches, name)
