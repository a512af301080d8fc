# SPDX-License-Identifier: Apache-2.0
"""The pieces in which a loader hands out its batches (accumulate.py), and how often an optimizer is stepped meanwhile."""

import collections
import weakref


class Chunks:
    """Iterator over the index lists of pieces; `plan` says of each piece handed out what it is."""

    def __init__(self, batches, pieces):
        self.batches = iter(batches)
        self.pieces = pieces
        self.size = None  # of a full piece
        self.waiting = collections.deque()
        self.plan = collections.deque()

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
                self.waiting.append((part, Piece(len(whole) / len(part), start == 0, left)))
        part, piece = self.waiting.popleft()
        self.plan.append(piece)
        return part


class Piece:
    """One piece of a batch as it is used."""

    def __init__(self, ratio, first, left):
        self.ratio = ratio
        self.first = first
        self.left = left  # pieces of its batch that follow
        self.last = left == 0
        self.again = False  # a model is used after its step() was held back
        self.decided = weakref.WeakKeyDictionary()  # optimizer whose step() was called -> whether it updates


class Pace:
    """How an optimizer is stepped, counted in pieces and batches of the whole run."""

    def __init__(self, called=0, updated=0):
        self.called = called  # turns of the loop there were at the last call of step()
        self.updated = updated  # batches there were at the last update
        self.intervals = collections.Counter()  # turns between two calls of step() -> how often

    def batches(self, interval=None):
        """Batches that the program itself takes for an update: what it did most often, one more interval included."""
        seen = self.intervals + collections.Counter([interval] if interval else [])
        return max(seen, key=lambda n: (seen[n], n), default=1)


class Batches:
    """Stands for a sampler of batches and hands out pieces."""

    def __init__(self, batches, pieces):
        self.batches = batches
        self.pieces = pieces

    def __iter__(self):
        return Chunks(self.batches, self.pieces)

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
        if name in ("batches", "pieces"):
            raise AttributeError(name)
        return getattr(self.batches, name)
