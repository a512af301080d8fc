# SPDX-License-Identifier: Apache-2.0
"""What torch.utils.checkpoint keeps for a backward pass where autograd's graph does not lead to it: what a piece without reentry took in,
what a selective one has saved of its operations, and what was computed again until it is used.

Known by weak references to the frames and dispatch modes of PyTorch's own; one frame of ours stands in a traceback through them.
"""

import functools
import weakref

from . import gathered, guard, holds, metadata, torchapi
from .state import state

_frames = weakref.WeakSet()  # of pieces that were entered and may be computed again
_stores = weakref.WeakSet()  # dispatch modes that give back what a selective piece has saved


def watch_frames(cls, name):
    """Attaches to the constructor of what a piece without reentry remembers."""
    gathered.after(cls, name, _frame_is_made)


def watch_stores(cls, name):
    """Attaches to the constructor of the mode of a selective piece that is computed again."""
    gathered.after(cls, name, _store_is_made)


def around_check(original):
    """For the method that is called when a piece has been computed again."""

    @functools.wraps(original)
    def check_recomputed_tensors_match(self, *args):
        _is_there_again(self)
        return original(self, *args)

    return check_recomputed_tensors_match


@guard.guarded
def _frame_is_made(frame):
    _frames.add(frame)


@guard.guarded
def _store_is_made(store):
    _stores.add(store)


@guard.guarded
def _is_there_again(frame):
    rows = []
    _add(rows, frame.recomputed)
    metadata.looks.append((metadata.now(), rows))


def rows():
    """A row for each tensor that a piece which has not been through its backward pass keeps now."""
    found = []
    for frame in tuple(_frames):
        _add_inputs(found, frame)
        _add(found, frame.recomputed)
    for store in tuple(_stores):
        _add(found, store.storage)
    return found


def _add_inputs(found, frame):
    """Never what somebody's hooks have packed; nothing where the release does not tell whether they have."""
    if not torchapi.reads_saved_tensors_without_unpacking():
        return
    saver = getattr(getattr(frame, "input_saver", None), "grad_fn", None)  # until 2.14
    saved = getattr(frame, "saved_args", ()) if saver is None else saver._raw_saved_tensors
    for value in saved:
        if hasattr(value, "unpack_hook"):
            _add(found, torchapi.saved_tensor(saver, "_raw_saved_tensors", value, 0, True))


def _add(found, held):
    """Rows of a tensor, and of those in what holds tensors: containers, and PyTorch's wrapper that notes a version."""
    if isinstance(held, state.torch.Tensor):
        found.extend(holds.rows_of("activations", held, "", whole=True))
    elif isinstance(held, (list, tuple)):
        for item in held:
            _add(found, item)
    elif hasattr(held, "values"):
        for item in tuple(held.values()):
            _add(found, item)
    elif hasattr(held, "val"):
        _add(found, held.val)
