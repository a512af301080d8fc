# SPDX-License-Identifier: Apache-2.0
"""One batch ahead for each loader worker: the same batches in the same order, fewer of them ready at once."""

from . import loader_calls


def install(change):
    """value: batches that each worker is ordered beforehand."""
    ahead = int(change.value) if (change.value or "").isdigit() else 0
    if ahead < 1:
        change.cannot("needs a number of batches: loader_prefetch=1")
        return
    change.how = ""

    def wish(now):
        return {"prefetch_factor": ahead} if now["num_workers"] and now["prefetch_factor"] > ahead else {}

    loader_calls.change_all(change, wish)
