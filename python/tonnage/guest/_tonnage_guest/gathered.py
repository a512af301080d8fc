# SPDX-License-Identifier: Apache-2.0
"""Parameters of a shard group that are whole for a while: what FullyShardedDataParallel and fully_shard (and zero.py's DeepSpeed) gather
before a module's work, and the buffer that they are gathered in; and gradients that fully_shard keeps whole from one microbatch to the next
(`set_requires_gradient_sync(False)`, as in a pipeline). Methods of theirs are wrapped, so one frame of ours stands in a traceback through them.
"""

import functools

from . import facts, guard, holds, metadata

_LABEL = "gathered for a while"


def after(cls, name, note, before=None):
    """`note` gets the object each time that a method of its class has been through, and `before` each time that it begins."""
    original = getattr(cls, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        if before is not None:
            before(self)
        result = original(self, *args, **kwargs)
        note(self)
        return result

    setattr(cls, name, wrapper)


def watch_groups(cls, name):
    """Attaches to fully_shard's method that waits for a group of parameters, and to the one that its backward pass ends with."""
    after(cls, name, _group_is_whole)
    after(cls, "post_backward", _gradients_stay_whole)


def watch_flat(cls, name):
    """Attaches to FullyShardedDataParallel's method that gathers a flat parameter."""
    after(cls, name, _flat_is_whole)


def mark(tensors):
    """Tensors that are whole now, and buffers that they were gathered in, with all of their storage."""
    facts.note_shards()
    rows = [row for tensor in tensors for row in holds.rows_of("gathered", tensor, _LABEL, whole=True)]
    if rows:
        metadata.gathers.append((metadata.now(), rows))


@guard.guarded
def _group_is_whole(group):
    mark([tensor for parameter in group.fsdp_params if parameter.mesh_info.mesh.size() > 1 for tensor in parameter.all_gather_outputs])


@guard.guarded
def _gradients_stay_whole(group):
    if group.reduce_grads:
        return
    whole = [gradient for parameter in group.fsdp_params
             for gradient in (parameter.unsharded_accumulated_grad, getattr(getattr(parameter, "_unsharded_param", None), "grad", None)) if gradient is not None]
    rows = [row for gradient in whole for row in holds.rows_of("gradients", gradient, "")]
    if rows:
        metadata.gathers.append((metadata.now(), rows))


@guard.guarded
def _flat_is_whole(handle):
    names = ("_full_param_padded", "_full_prec_full_param_padded") if handle.world_size > 1 else ()
    tensors = [getattr(handle.flat_param, name, None) for name in names]
    mark([tensor for tensor in tensors if tensor is not None])
