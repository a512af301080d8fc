# SPDX-License-Identifier: Apache-2.0
"""Fewer worker processes for data loaders: the same samples in the same order; what a data set draws at random (augmentation) is
drawn by another process, and so is another."""

from . import loader_calls


def install(change):
    """value: the number of workers of each loader that has more."""
    if not (change.value or "").isdigit():
        change.cannot("needs a number of workers: loader_workers=2")
        return
    workers = int(change.value)
    change.how = ""

    def wish(now):
        if now["num_workers"] <= workers:
            return {}
        if workers:
            return {"num_workers": workers}
        # torch wants neither of these without workers
        rest = {"prefetch_factor": None} if now["prefetch_factor"] is not None else {}
        return {"num_workers": 0, "persistent_workers": False, **rest}

    loader_calls.change_all(change, wish)
