# SPDX-License-Identifier: Apache-2.0
"""Where a data loader's worker processes are not wanted, the program's own process loads the batches. There are two such places.

Epochs that give only a batch or two. Starting eight workers, letting them load ahead and ending them again takes seconds, for each of
forty epochs. From the second epoch of a data set in a fast-forward on, torch's own iterator for no workers takes their place.

Workers that count together. A multiprocessing.Value that several workers draw their batch from (the masks of ijepa's collator)
gives each run other batches, as the workers happen to take turns: two runs of the same program then need different memory, and
what a change saves cannot be told from chance. One process takes the turns in order. Where the computer's memory is measured
(--host-memory), workers stay.

The batches are those of the program's data set, sampler and collate function, so an epoch with other sizes shows them as before.
A data set that works in a worker only fails here, and gets its workers after all: the program never sees that error.
"""

import functools
import sys
import types

from . import fast_forward, guard, methods
from .state import settings

_MOST = 500  # objects of a data set and its collate function that are looked at
_LONGEST = 64  # a longer list holds samples


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
    return loader.num_workers > 0 and (fast_forward.has_met(loader.dataset) or _count_together(loader))


def _count_together(loader):
    """Whether several workers write to one multiprocessing.Value or Array."""
    shared = getattr(sys.modules.get("multiprocessing.sharedctypes"), "SynchronizedBase", None)
    if shared is None or loader.num_workers < 2 or settings.host_memory:
        return False
    seen, left = set(), [loader.collate_fn, loader.dataset]
    while left and len(seen) < _MOST:
        item = left.pop()
        if issubclass(type(item), shared):
            return True
        if id(item) not in seen:
            seen.add(id(item))
            left.extend(_held_by(item))
    return False


def _held_by(item):
    kind = type(item)
    if kind is types.FunctionType:
        return [cell.cell_contents for cell in item.__closure__ or () if _is_full(cell)]
    if kind is types.MethodType:
        return [item.__self__]
    if kind is functools.partial:
        return [item.func, *item.args, *item.keywords.values()]
    if kind in (list, tuple, dict):
        return () if len(item) > _LONGEST else list(item.values() if kind is dict else item)
    if issubclass(kind, (type, types.ModuleType)):
        return ()
    return list(getattr(item, "__dict__", {}).values())


def _is_full(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False  # what it is for has not been bound yet
    return True


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
