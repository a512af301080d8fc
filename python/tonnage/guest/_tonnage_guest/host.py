# SPDX-License-Identifier: Apache-2.0
"""What data loaders hold of the computer's memory, where somebody asked (--host-memory; doc/design/0036-hosts.md).

Kernels do not run on a virtual GPU, so the program takes batches faster than a real card would, and workers never get ahead. So
here an iterator's workers are waited for, until all batches that they were ordered beforehand are ready, and the supervisor has
looked at them. Nothing is taken out of a queue, and no batch is another.
"""

import collections.abc
import gc
import time
import weakref

from . import frames, guard, ledger, methods, record
from .state import settings, state

_LOOKS = 2  # of the supervisor, at what is ready
_ASLEEP = 0.01  # seconds
_SETTLES = 0.2  # seconds that the last batch may take from a worker's queue to memory that is shared
_LONGEST = 1 / 4  # of the run's time limit, for one iterator,
_ALL = 3 / 4  # and for all of them
_BATCHES = (1, 3)  # of an iterator: the first, and one after the first update
_MOST = 16
_DEPTH = 4

_made = weakref.WeakKeyDictionary()  # loader -> where it was made
_rows = {}  # key of a loader -> row of the document


class _Waited:
    """Seconds that were waited for workers."""

    seconds = 0.0


def watch_loaders(cls, name):
    """Attaches to the constructor, which is noted as it is looked up."""
    if settings.host_memory:
        methods.put(cls, name, guard.guarded(_note_loader), None)


def _note_loader(loader):
    # One made by a trainer is the line that called the trainer; constructors of subclasses call torch's.
    frame = frames.caller()
    while frame is not None and (frames.kind(frame.f_code) is frames.OWN or _constructs(frame, loader)):
        frame = frame.f_back
    frame = frames.place(frame)
    if frame is not None and loader not in _made:
        _made[loader] = frames.describe(frame)


def _constructs(frame, loader):
    code = frame.f_code
    return code.co_name == "__init__" and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is loader


@guard.guarded
def batch_fetched(batch):
    """A batch is about to be handed out."""
    if not settings.host_memory:
        return
    iterator = batch.iterator
    row = _row_of(iterator)
    if row is None:
        return
    row["batch_bytes"] = max(row["batch_bytes"], _bytes(batch.data))
    workers = getattr(iterator, "_workers", None)
    if not workers:
        return
    known = [worker.pid for worker in workers if worker.pid not in row["pids"]]
    row["pids"] = (row["pids"] + known)[-64:]
    if getattr(iterator, "_num_yielded", 0) in _BATCHES:
        _keep_shared()
        _wait(iterator, workers, row)
        record.write_now()
        _keep_shared()


def document():
    """[{"at", "workers", "ahead", "batch_size", "batch_bytes", "pins", "full", "pids"}] for guest/<pid>.json."""
    return list(_rows.values())


def _row_of(iterator):
    sampler = getattr(iterator, "_index_sampler", None)
    found = [pair for pair in list(_made.items()) if getattr(pair[0], "_index_sampler", None) is sampler]
    loader, at = found[-1] if found else (None, None)
    # an epoch that ends early does without them (workers.py)
    workers = getattr(loader, "num_workers", None) or getattr(iterator, "_num_workers", 0)
    key = (at["file"], at["line"], workers) if at else (None, id(type(iterator)), workers)
    if key not in _rows and len(_rows) < _MOST:
        _rows[key] = {
            "at": at,
            "workers": workers,
            "ahead": getattr(iterator, "_prefetch_factor", None) or 0,
            "batch_size": getattr(loader, "batch_size", None),
            "batch_bytes": 0,
            "pins": bool(getattr(iterator, "_pin_memory", False)),
            "full": False,
            "pids": [],
        }
    return _rows.get(key)


def _keep_shared():
    """Python's full collection, where one is due, is put off: it writes to each object that the process shares with its workers, and
    copies their pages; with our own objects among the program's, it would be due long before its time. Nothing is looked at
    or freed here, and what the program makes from now on is collected as ever."""
    if gc.get_freeze_count() == 0:  # else the program's own: those would be thawed
        gc.freeze()
        gc.unfreeze()


def _wait(iterator, workers, row):
    began = time.monotonic()
    until = began + max(0.0, min(_LONGEST * settings.seconds, _ALL * settings.seconds - _Waited.seconds))
    full_at = looks = None
    asked = False
    while time.monotonic() < until and all(worker.is_alive() for worker in workers):
        now = time.monotonic()
        if full_at is None and _is_full(iterator):
            full_at = now
        if full_at is not None and not asked and now - full_at >= _SETTLES:
            ledger.ask_for_a_look()
            asked = True
        if asked and looks is None and not ledger.is_asked():
            looks = ledger.host_looks()
        if looks is not None and ledger.host_looks() >= looks + _LOOKS:
            row["full"] = True
            break
        time.sleep(_ASLEEP)
    _Waited.seconds += time.monotonic() - began


def _is_full(iterator):
    """All that was ordered is there. Batches that came before their turn were counted out of `outstanding` already."""
    outstanding = getattr(iterator, "_tasks_outstanding", None)
    queue = getattr(iterator, "_data_queue", None)
    if outstanding is None or queue is None:
        return True
    return queue.qsize() >= outstanding


def _bytes(value, depth=0):
    """Bytes of the tensors and arrays in nested tuples, lists and mappings."""
    if isinstance(value, state.torch.Tensor):
        return value.nbytes
    if depth < _DEPTH and isinstance(value, collections.abc.Mapping):
        return sum(_bytes(item, depth + 1) for item in value.values())
    if depth < _DEPTH and isinstance(value, (list, tuple)):
        return sum(_bytes(item, depth + 1) for item in value)
    if type(value).__module__ == "numpy":
        return getattr(value, "nbytes", 0)
    return 0
