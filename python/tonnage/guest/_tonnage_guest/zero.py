# SPDX-License-Identifier: Apache-2.0
"""What DeepSpeed's ZeRO holds that no module or optimizer of PyTorch's does: buckets for gradients (as many numbers as `reduce_bucket_size` says,
however few the model has; stages 1 and 2 make them as a backward pass begins, stage 3 once), this rank's part of the gradients, and in
stage 3 its part of the parameters, and parameters that are whole for a while with the buffers that they are gathered in.
"""

import weakref

from . import gathered, guard, holds, imports, metadata
from .state import state

_LABEL = "DeepSpeed's bucket"
_optimizers = weakref.WeakSet()


def install():
    """Called once torch is imported."""
    holds.lasting.append(_rows)
    imports.watch("deepspeed.runtime.zero.stage_1_and_2", guard.guarded(_watch_stages_1_and_2))
    imports.watch("deepspeed.runtime.zero.stage3", guard.guarded(_watch_stage_3))
    imports.watch("deepspeed.runtime.zero.partition_parameters", guard.guarded(_watch_gathering))


def _watch_stages_1_and_2(module):
    for name in ("setup_buckets", "independent_gradient_partition_epilogue"):
        gathered.after(module.DeepSpeedZeroOptimizer, name, _are_there)
    gathered.after(module.DeepSpeedZeroOptimizer, "reduce_gradients", _are_there, before=_gradients_are_whole)


def _watch_stage_3(module):
    gathered.after(module.DeepSpeedZeroOptimizer_Stage3, "_setup_for_real_optimizer", _are_there)


def _watch_gathering(module):
    gathered.after(module.AllGatherCoalescedHandle, "__init__", _buffer_is_there)
    gathered.after(module.AllGatherCoalescedHandle, "wait", _parameters_are_whole)
    gathered.after(module.AllGatherHandle, "wait", _parameter_is_whole)


@guard.guarded
def _buffer_is_there(handle):
    if handle.world_size > 1 and handle.partitions:
        gathered.mark(handle.partitions[:1])


@guard.guarded
def _parameters_are_whole(handle):
    if handle.world_size > 1:
        gathered.mark([parameter.data for parameter in handle.params])


@guard.guarded
def _parameter_is_whole(handle):
    parameter = handle._AllGatherHandle__param
    if parameter.ds_zero_partition_world_size > 1:
        gathered.mark([parameter.data])


@guard.guarded
def _gradients_are_whole(optimizer):
    """Stage 1 has all gradients until it reduces them at the end of a backward pass; before the update it takes them from their parameters."""
    found = []
    for group in optimizer.bit16_groups:
        for parameter in group:
            _add(found, "gradients", [parameter.grad, getattr(parameter, "grad_accum", None)])
    if found:
        metadata.gathers.append((metadata.now(), found))


@guard.guarded
def _are_there(optimizer):
    _optimizers.add(optimizer)
    found = _rows_of(optimizer)
    if found:
        metadata.gathers.append((metadata.now(), found))


def _rows():
    return [row for optimizer in _optimizers for row in _rows_of(optimizer)]


def _rows_of(optimizer):
    found = []
    for bucket in getattr(optimizer, "ipg_buckets", {}).values():
        _add(found, "communication", getattr(bucket, "buffer", None), _LABEL)
    _add(found, "gradients", getattr(optimizer, "averaged_gradients", None))
    _add(found, "gradients", getattr(optimizer, "grad_partitions_flat_buffer", None))
    _add(found, "parameters", getattr(optimizer, "fp16_partitioned_groups_flat", None))
    return found


def _add(found, category, held, label=""):
    """Rows of a tensor, and of those in lists and dicts."""
    if isinstance(held, state.torch.Tensor):
        if held.is_cuda:
            found.extend(holds.rows_of(category, held, label))
    elif isinstance(held, (list, dict)):
        for item in held.values() if isinstance(held, dict) else held:
            _add(found, category, item, label)
