# SPDX-License-Identifier: Apache-2.0
"""gradient_as_bucket_view=True: gradients lie in DistributedDataParallel's buckets, not beside them."""

from . import code, optimizer_calls

_HOW = "Wrap the model with gradient_as_bucket_view=True: gradients lie in the buckets that they are summed in."


def edit(change, source):
    """Adds the argument where a model is wrapped."""
    for call in code.calls(source, "DistributedDataParallel", "DDP"):
        given = code.keyword(call, "gradient_as_bucket_view")
        if call.args and (given is None or source.of(given.value) != "True"):
            optimizer_calls.set_one(change, source, call, "gradient_as_bucket_view", "True", _HOW)
