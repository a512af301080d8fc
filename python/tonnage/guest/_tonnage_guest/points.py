# SPDX-License-Identifier: Apache-2.0
"""Every place of torch that the hook changes, in one table, and the one function that attaches to them.

A row says where (module and name in it), which releases have it, what attaches there, and what is lost where the name is not
there or has another shape. A place that a release should have and has not is told in `sensors` of the run's JSON, with what
that costs: the sensor is absent when none of its places was found.

What attaches is called as attach(owner, name) once the module is imported, and returns False where the place has another shape.
"""

import collections
import functools
import sys

from . import absent, again, backward, calls, compiling, facts, files, gathered, generated, guard, history, holds, host, imports, init, loaders, usage
from . import launching, loaded, methods, oom, optimizers, peaks, phases, ports, ranks, recomputed, references, torchapi, values, workers
from .state import state

Point = collections.namedtuple("Point", "when module name releases attach lost")

# When a row counts: in a build with CUDA (INITIALISED: once CUDA is), where somebody reads the memory history, with a virtual GPU,
# where random initialisation is skipped.
ALWAYS, CUDA, INITIALISED, DETAIL, VIRTUAL, UNFILLED = "always", "cuda", "initialised", "detail", "virtual", "unfilled"
ALL = (2, 6), None  # the first release that has it, and the last (None: the newest, too)
_STEPS = "updates of an optimizer are not counted as steps"
_HISTORY = "what memory is for, and whose line allocated it, is unknown"
_RESETS = "peaks before a reset of torch's statistics by the program are unknown"
_COMPILING = "the time limit does not wait while the program compiles"
_SCALER = "the scale of a gradient scaler is taken for zero, so steps may be skipped"
_SLOW = "some random initialisation on the CPU runs in full, so the run takes longer"
_ABSENT = "ranks of a job that are not run are waited for"
_RANKS = "a run may stop before a rank that has not talked to the others has made its steps"
_PORTS = "trials that meet at a port that the program names disturb each other"
_CHECKPOINTS = "a checkpoint that stays on the card is counted as temporaries, and not told"
_PIECES = "what a checkpoint without reentry keeps and computes again is counted as temporaries"
_SHARDS = "parameters that a shard group has gathered are counted as temporaries"

TABLE = (
    # calls of modules and compiled functions
    Point(ALWAYS, "torch.nn.modules.module", "Module._wrapped_call_impl", ALL, calls.watch_modules,
          "calls of modules are not seen: forward passes count for no step"),
    Point(ALWAYS, "torch._dynamo.eval_frame", "_maybe_set_eval_frame", ALL, methods.wrapping(calls.around_switch),
          "calls of compiled functions are not seen"),
    Point(ALWAYS, "torch._dynamo.trace_rules", "SKIP_DIRS", ALL, calls.leave_ours_alone,
          "a compiled program may have more graphs"),
    # optimizers
    Point(ALWAYS, "torch.optim.optimizer", "register_optimizer_step_post_hook", ALL, optimizers.watch_update_ends, _STEPS),
    Point(DETAIL, "torch.optim.optimizer", "register_optimizer_step_pre_hook", ALL, optimizers.watch_update_begins,
          "updates of an optimizer are not told apart as a phase"),
    Point(ALWAYS, "torch.optim.optimizer", "Optimizer._patch_step_function", ALL, methods.wrapping(optimizers.around_construction),
          "passes before the first step are counted as steps"),
    # data loaders
    Point(ALWAYS, "torch.utils.data.dataloader", "_BaseDataLoaderIter.__next__", ALL, loaders.watch_batches,
          "batches are not seen, and epochs are not ended early, so the run takes longer"),
    Point(ALWAYS, "torch.utils.data.dataloader", "_BaseDataLoaderIter._next_index", ALL, loaders.watch_indices,
          "longer inputs that come later are not known, and --inputs longest changes nothing"),
    Point(ALWAYS, "torch.utils.data._utils.fetch", "_MapDatasetFetcher.fetch", ALL, again.watch_fetches,
          "each trial reads all of its batches"),
    Point(ALWAYS, "torch.utils.data.dataloader", "DataLoader._get_iterator", ALL, workers.watch_iterators,
          "epochs that end early start their worker processes all the same"),
    Point(ALWAYS, "torch.utils.data.dataloader", "DataLoader.__init__", ALL, host.watch_loaders,
          "the lines of data loaders are unknown to --host-memory"),
    # backward passes
    Point(DETAIL, "torch.autograd.graph", "_engine_run_backward", ALL, backward.watch_passes,
          "what is kept for backward is inferred from when it is freed"),
    Point(DETAIL, "torch._C._autograd", "_push_saved_tensors_default_hooks", ALL, methods.wrapping(backward.around_packing),
          "checkpointing is not noticed as it is entered"),
    Point(DETAIL, "torch.utils.checkpoint", "_CheckpointFrame.__init__", ALL, recomputed.watch_frames, _PIECES),
    Point(DETAIL, "torch.utils.checkpoint", "_CheckpointFrame.check_recomputed_tensors_match", ALL,
          methods.wrapping(recomputed.around_check), _PIECES),
    Point(DETAIL, "torch.utils.checkpoint", "_CachedTorchDispatchMode.__init__", ALL, recomputed.watch_stores, _PIECES),
    # phases
    Point(DETAIL, "torch.serialization", "_open_zipfile_writer", ALL, methods.wrapping(phases.around_writer),
          "saving is no phase of its own"),
    Point(DETAIL, "torch.serialization", "_open_zipfile_reader", ALL, methods.wrapping(phases.around_reader),
          "loading is no phase of its own"),
    # what is loaded, and what takes it
    Point(DETAIL, "torch.serialization", "_load", ALL, methods.wrapping(loaded.around_load), _CHECKPOINTS),
    Point(DETAIL, "torch.serialization", "_legacy_load", ALL, methods.wrapping(loaded.around_load), _CHECKPOINTS),
    Point(DETAIL, "safetensors.torch", "load_file", ALL, methods.wrapping(loaded.around_load), _CHECKPOINTS),
    Point(DETAIL, "torch.distributed.checkpoint.state_dict_loader", "_load_state_dict", ALL, methods.wrapping(loaded.around_read), _CHECKPOINTS),
    Point(DETAIL, "torch.nn.modules.module", "Module.load_state_dict", ALL, loaded.watch_modules, _CHECKPOINTS),
    Point(DETAIL, "torch.optim.optimizer", "Optimizer.load_state_dict", ALL, loaded.watch_optimizers, _CHECKPOINTS),
    # what tensors are
    Point(DETAIL, "torch.nn.modules.module", "register_module_parameter_registration_hook", ALL, holds.watch_parameters,
          "parameters, gradients and optimizer state are counted as temporaries"),
    Point(DETAIL, "torch.nn.modules.module", "register_module_buffer_registration_hook", ALL, holds.watch_buffers,
          "buffers of modules without parameters are not named"),
    Point(DETAIL, "torch.nn.modules.module", "register_module_module_registration_hook", ALL, holds.watch_children,
          "second copies of a model are counted as the model"),
    Point(DETAIL, "torch.nn.modules.module", "Module.__setstate__", ALL, methods.wrapping(holds.around_setstate),
          "parameters of copied modules are counted as temporaries"),
    Point(DETAIL, "torch.utils", "swap_tensors", ALL, methods.wrapping(references.around_swap),
          "parameters of several parts cannot be converted: --no-detail"),
    Point(DETAIL, "torch.distributed.fsdp._fully_shard._fsdp_param_group", "FSDPParamGroup.wait_for_unshard", ALL,
          gathered.watch_groups, _SHARDS),
    Point(DETAIL, "torch.distributed.fsdp._flat_param", "FlatParamHandle.unshard", ALL, gathered.watch_flat, _SHARDS),
    # usage and facts
    Point(DETAIL, "torch.optim.optimizer", "Optimizer.zero_grad", ALL, usage.watch_zero_grad, "advice on zero_grad is missing"),
    Point(DETAIL, "torch.nn.modules.module", "Module.zero_grad", ALL, usage.watch_zero_grad, "advice on zero_grad is missing"),
    Point(DETAIL, "torch._tensor", "Tensor.pin_memory", ALL, usage.watch_pinning, "advice on pinned memory is missing"),
    Point(DETAIL, "torch._C", "_cuda_emptyCache", ALL, usage.watch_function, "advice on empty_cache is missing"),
    Point(DETAIL, "torch._C", "_cuda_setMemoryFraction", ALL, usage.watch_function, "limits that the program sets are unknown"),
    Point(DETAIL, "torch.amp.autocast_mode", "autocast.__enter__", ALL, facts.watch_autocast,
          "autocast may be advised where it is used"),
    Point(DETAIL, "torch.nn.modules.module", "Module.eval", ALL, facts.watch_eval_call, "whether eval() was asked for is unknown"),
    Point(DETAIL, "torch.nn.modules.module", "Module.train", ALL, facts.watch_train_call, "whether eval() was asked for is unknown"),
    # the allocator and its history
    Point(CUDA, "torch._C", "_cuda_resetPeakMemoryStats", ALL, methods.wrapping(peaks.around_reset), _RESETS),
    Point(CUDA, "torch._C", "_accelerator_resetPeakStats", ((2, 9), None), methods.wrapping(peaks.around_reset), _RESETS),
    Point(CUDA, "torch._C", "_cuda_record_memory_history", ALL, history.attach, _HISTORY),
    Point(CUDA, "torch._C", "_cuda_record_memory_history_legacy", ALL, history.attach,
          "a recorder of the program that is asked for in the old way is not noticed"),
    Point(CUDA, "torch._C", "_cuda_memorySnapshot", ALL, history.attach, _HISTORY),
    # compilers
    Point(ALWAYS, "torch._dynamo.callback", "callback_handler", ALL, compiling.watch_dynamo, _COMPILING),
    Point(ALWAYS, "torch._inductor.compile_fx", "compile_fx_aot", ALL, methods.wrapping(compiling.around), _COMPILING),
    Point(ALWAYS, "torch._inductor.compile_fx", "compile_fx", ALL, methods.wrapping(generated.around_compile),
          "memory of compiled code is named by the call, not by the line it was compiled from"),
    Point(ALWAYS, "torch._inductor.runtime.triton_heuristics", "CachingAutotuner.autotune_to_one_config", ALL,
          methods.wrapping(compiling.around), _COMPILING),
    Point(ALWAYS, "torch._inductor.runtime.triton_heuristics", "CachingAutotuner.precompile", ALL,
          methods.wrapping(compiling.around), _COMPILING),
    # values and files of a virtual GPU
    Point(VIRTUAL, "torch.amp.grad_scaler", "GradScaler._lazy_init_scale_growth_tracker", ALL,
          methods.wrapping(values.around_lazy_scale), _SCALER),
    Point(VIRTUAL, "torch.amp.grad_scaler", "GradScaler.load_state_dict", ALL, methods.wrapping(values.around_load), _SCALER),
    Point(VIRTUAL, "torch.amp.grad_scaler", "GradScaler._maybe_opt_step", ALL, methods.wrapping(values.around_step), _SCALER),
    Point(VIRTUAL, "torch._C", "PyTorchFileWriter", ALL, files.attach, "a trial writes its checkpoints in full"),
    # trials side by side
    Point(VIRTUAL, "torch.distributed.rendezvous", "TCPStore", ALL, ports.watch_store, _PORTS),
    # jobs of several ranks
    Point(VIRTUAL, "torch.distributed.distributed_c10d", "_new_process_group_helper", ALL, ranks.watch_groups, _RANKS),
    # jobs of which not all ranks are run
    Point(VIRTUAL, "torch.distributed.rendezvous", "TCPStore", ALL, absent.watch_store, _ABSENT),
    Point(VIRTUAL, "torch.distributed.distributed_c10d", "_new_process_group_helper", ALL, absent.watch_groups, _ABSENT),
    Point(VIRTUAL, "torch.distributed.checkpoint.default_planner", "_validate_global_plan", ALL, absent.watch_plans, _ABSENT),
    Point(VIRTUAL, "torch.distributed.elastic.rendezvous.registry", "get_rendezvous_handler", ALL, launching.watch_rendezvous, _ABSENT),
    Point(VIRTUAL, "torch.distributed.elastic.agent.server.api", "SimpleElasticAgent._assign_worker_ranks", ALL,
          launching.watch_workers, _ABSENT),
    Point(VIRTUAL, "torch.distributed.elastic.agent.server.local_elastic_agent", "start_processes", ALL,
          launching.watch_processes, _ABSENT),
    Point(UNFILLED, "torch.nn.init", "_no_grad_trunc_normal_", ALL, methods.wrapping(init.around_initialiser), _SLOW),
    Point(UNFILLED, "torch.nn.init", "orthogonal_", ALL, methods.wrapping(init.around_initialiser), _SLOW),
    Point(INITIALISED, "torch._C", "_cuda_attach_out_of_memory_observer", ALL, oom.attach,
          "an out-of-memory error has no line, and handled ones are not counted"),
)


def attach(*times):
    """Attaches to every place that counts at these times and that this release has, as soon as its module is imported."""
    release = torchapi.release()
    for point in TABLE:
        if point.when in times and is_expected(point, release):
            if point.module not in sys.modules:
                state.attached.add(guard.sensor_of(point.attach))  # as far as can be told now
            imports.watch(point.module, functools.partial(_attach, point))


def is_expected(point, release):
    """True where a release, (major, minor), has the place."""
    first, last = point.releases
    return first <= release and (last is None or release <= last)


def find(point, module):
    """(owner, name) of a place; the owner is None where it is not there."""
    *path, name = point.name.split(".")
    owner = module
    for each in path:
        owner = getattr(owner, each, None)
    return (owner if hasattr(owner, name) else None), name


def _attach(point, module):
    sensor = guard.sensor_of(point.attach)
    if state.hook_error is not None or sensor in state.lost:
        return
    try:
        owner, name = find(point, module)
        found = owner is not None and point.attach(owner, name) is not False
    except Exception as error:
        guard.lose(sensor, error)
        return
    if found:
        state.attached.add(sensor)
    elif point.lost not in state.missing.setdefault(sensor, []):
        state.missing[sensor].append(point.lost)
