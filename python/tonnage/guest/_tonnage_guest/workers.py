# SPDX-License-Identifier: Apache-2.0
"""Epochs that give only a batch or two do not start worker processes for them: the program's own process loads them.

Starting eight workers, letting them load ahead and ending them again takes seconds, for each of forty epochs. From the
second epoch of a data set in a fast-forward on, torch's own iterator for no workers takes their place. The batches are those
of the program's data set, sampler and collate function, so an epoch with other sizes shows them as before. A data set
that works in a worker only fails here, and gets its workers after all: the program never sees that error.

Invariant: nothing is replaced before the fast-forward, nor where a loader keeps its workers alive itself.
"""

import sys

from . import fast_forward, guard, methods


def watch_iterators(cls, name):
    """Attaches to the loader's method that makes an iterator. False without torch's own iterator for no workers."""
    base = getattr(sys.modules[cls.__module__], "_SingleProcessDataLoaderIter", None)
    if base is None:
        return False
    iterator = _iterator_class(base)

    def without_workers(original, loader):
        try:
            return iterator(loader, original)
        except Exception:
            return original(loader)

    methods.put(cls, name, guard.guarded(_needs_none), without_workers)
    return True


def _needs_none(loader):
    return loader.num_workers > 0 and fast_forward.has_met(loader.dataset)


def _iterator_class(base):
    class Iterator(base):
        """As torch's own; `_with_workers` is the real one, where it had to be made."""

        def __init__(self, loader, original):
            own = {name: loader.__dict__[name] for name in ("num_workers", "timeout")}
            loader.__dict__.update(num_workers=0, timeout=0)
            try:
                super().__init__(loader)
            finally:
                loader.__dict__.update(own)
            self._loader, self._original, self._with_workers = loader, original, None

        def _reset(self, loader, *rest):
            super()._reset(loader, *rest)
            self._with_workers = None

        def _next_data(self):
            if self._with_workers is None:
                try:
                    return super()._next_data()
                except StopIteration:
                    raise
                except Exception:
                    self._with_workers = self._original(self._loader)
            return self._with_workers._next_data()

    Iterator.__name__ = Iterator.__qualname__ = base.__name__
    Iterator.__module__ = base.__module__
    return Iterator
