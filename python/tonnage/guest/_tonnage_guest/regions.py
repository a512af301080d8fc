# SPDX-License-Identifier: Apache-2.0
"""Named regions: parts of the program that somebody tells apart that knows it better than the hook does, such as a test.

While a region is named it is the ledger's, instead of the phase, so that its peak is its own. Earlier ones leave nothing of
PyTorch's cache behind, and PyTorch's history begins with it: a snapshot at its end tells of this region. What is still
alive of earlier ones counts in it, since the card holds it.
"""

import gc

from . import guard, history, peaks, phases, torchapi
from .state import state

_LONGEST = 47  # bytes of a name in the ledger


def _begin(name, place):
    gc.collect()
    if state.cuda_initialized:
        _empty_cache()
        history.new_window()
    name = name.encode()[:_LONGEST].decode(errors="ignore")
    state.regions[name] = place
    phases.name_region(name)


def _end(path):
    kept = False
    if state.cuda_initialized:
        peaks.read(everywhere=True)
        kept = history.keep(path)
    phases.name_region(None)
    return kept


begin = guard.guarded(_begin)  # name, {"file", "line", "function"} or None
end = guard.guarded(_end)  # the file for the snapshot; True when it was written


def _empty_cache():
    """As torch.cuda.empty_cache() and without the workspaces that cuBLAS keeps, but not the program's doing."""
    for name in ("_cuda_clearCublasWorkspaces", "_cuda_emptyCache"):
        empty = getattr(torchapi.core(), name, None)
        if empty is not None:
            empty()
