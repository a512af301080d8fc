# SPDX-License-Identifier: Apache-2.0
"""Starts the hook. A program without torch pays for this file, draws.py, guard.py, held.py, imports.py, state.py, and no other:
that is why the rest is imported where it is first wanted, here and nowhere else.

Order: sitecustomize → start → (torch imported) on_torch → (CUDA initialised) on_cuda. A forked child knows nothing
and owns nothing until it initialises CUDA itself.
"""

import gc
import os
import sys

from . import guard, held, imports
from .methods import watch_network
from .state import renew, settings, state


def start():
    """Called by sitecustomize."""
    state.armed = True
    if os.environ.get("TONNAGE_RANKS"):
        from . import absent

        absent.look()
    guard.on_lost.append(lambda: _record().write_now())
    imports.watch("torch", on_torch)
    imports.if_missing("torch", _no_torch)
    imports.install()
    if not settings.host_memory:
        imports.watch("torch._compile", _on_marks)
        imports.watch("torch.optim.optimizer", _on_optimizers)
    imports.watch("IPython.core.interactiveshell", _on_ipython)
    if settings.gpu == "virtual":
        from . import draws

        draws.install()
    _hold_back()
    if os.environ.get("TONNAGE_FETCHED"):
        from . import fetched

        guard.attempt(fetched.install, os.environ["TONNAGE_FETCHED"])
    if os.environ.get("TONNAGE_DATA") == "shape":
        from . import made_data

        guard.attempt(made_data.install)
    if settings.gpu == "virtual" and os.environ.get("TONNAGE_WEIGHTS") in ("auto", "shape"):
        from . import pretrained

        guard.attempt(pretrained.install)
    watch_network()
    os.register_at_fork(after_in_child=_in_child)
    if os.environ.get("TONNAGE_FORKS"):
        from . import forks

        forks.serve(_renewed)
    if os.environ.get("TONNAGE_CHANGES") or os.environ.get("TONNAGE_PATCH"):
        _load_changes(os.environ.get("TONNAGE_CHANGES", ""))


def _on_marks(module):
    from . import uncompiled

    guard.attempt(uncompiled.mark_late, module)


def _on_optimizers(module):
    from . import uncompiled

    guard.attempt(uncompiled.stop_late, module)


def _hold_back():
    """In every process, before anything else is imported: names that are bound early are the replaced ones."""
    if not held.closed():
        return
    from . import downloads, trackers, uploads

    guard.attempt(uploads.install)
    guard.attempt(trackers.install)
    guard.attempt(downloads.install)


def _load_changes(text):
    """The changes that `tonnage fix` tries: a package beside the guest's folder (doc/design/0009-changes.md)."""
    try:
        from importlib.util import module_from_spec, spec_from_file_location

        beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        folder = os.path.join(beside, "changes")
        spec = spec_from_file_location("_tonnage_changes", os.path.join(folder, "__init__.py"))
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        module.start(text)
    except Exception as error:
        guard.disarm(error)


def on_torch(torch):
    """torch has been imported."""
    try:
        _set_up(torch)
    except Exception as error:
        guard.disarm(error)


def _set_up(torch):
    from . import compiling, ending, files, four_bits, generation, usage, init, ledger, origin, points, torchapi, trainers, zero

    state.torch = torch
    record = _record()
    guard.on_disarm.append(record.write_now)
    origin.start()
    ledger.attach(settings.run)
    cuda = torchapi.is_cuda_build()
    detail = cuda and settings.history
    _wire(detail)
    guard.attempt(ending.install)
    guard.attempt(files.install)
    points.attach(points.ALWAYS)
    if cuda:
        torchapi.queue_at_cuda_init(_on_cuda)
        points.attach(points.CUDA)
    if detail:
        points.attach(points.DETAIL)
        guard.attempt(zero.install)
        guard.attempt(usage.install)
    guard.attempt(trainers.install)
    guard.attempt(compiling.install)
    if settings.gpu == "virtual":
        points.attach(points.VIRTUAL)
        guard.attempt(generation.install)
        guard.attempt(four_bits.install)
        if settings.host_memory:
            from . import library_memory

            guard.attempt(library_memory.hold, torch)
        if settings.init == "skip":
            guard.attempt(init.install, torch)
            points.attach(points.UNFILLED)
    record.write_now()


def _wire(detail):
    """Who hears of what, in this order: recorders before those that read them. `detail`: somebody will read PyTorch's
    memory history."""
    from . import ahead, collectives, events, facts, graph, history, holds, host, inputs, oom, peaks, phases, ranks, record, fast_forward
    from . import settle, shapes, step_growth, steps, trainings, unused, work, worst_first

    if detail:
        events.call_began.subscribe(phases.call_began, unused.call_began)
        events.call_made.subscribe(unused.call_made, inputs.call_made)
        events.update_began.subscribe(holds.update_began, phases.update_began)
        events.update_ended.subscribe(phases.update_ended)
        events.backward_began.subscribe(phases.backward_began)
        events.backward_ended.subscribe(phases.backward_ended)
        events.graph_in_use.subscribe(graph.look)
        events.saved_tensors_packed.subscribe(graph.note_packing)
        events.checkpoint_met.subscribe(facts.note_checkpoint)
        events.file_opened.subscribe(phases.file_opened, settle.file_opened)
        events.snapshot_begins.subscribe(holds.look)
        events.out_of_memory_snapshot_begins.subscribe(graph.mark_unfinished_forward)
        events.call_began.subscribe(trainings.call_began)
        events.update_began.subscribe(trainings.update_began)
        events.update_ended.subscribe(trainings.update_ended)
        events.memory_piles_up.subscribe(trainings.out_of_memory)
    else:
        events.update_ended.subscribe(trainings.update_began)  # nobody watches beginnings; changes ask what was trained
    events.call_ended.subscribe(steps.call_ended, settle.call_ended)
    events.optimizer_made.subscribe(facts.note_optimizer, trainings.optimizer_made, steps.optimizer_made)
    events.update_ended.subscribe(facts.note_optimizer, steps.update_ended)
    events.batch_fetched.subscribe(shapes.batch_fetched, inputs.batch_fetched, steps.batch_fetched)
    events.indices_wanted.subscribe(worst_first.indices_wanted)
    events.indices_taken.subscribe(ahead.indices_taken)
    events.batch_fetched.subscribe(ahead.batch_fetched, worst_first.batch_fetched)
    if settings.host_memory:
        events.batch_fetched.subscribe(host.batch_fetched)
    events.batch_begins.subscribe(steps.batch_begins, fast_forward.batch_begins)
    if detail:
        events.batch_begins.subscribe(phases.batch_begins)
    events.batch_begins.subscribe(settle.batch_begins)
    events.training_began.subscribe(phases.training_began)
    events.waited.subscribe(fast_forward.waited)
    events.counting_began.subscribe(settle.restart, step_growth.restart)
    events.went_on.subscribe(collectives.went_on, oom.progress)
    events.memory_piles_up.subscribe(_look_for_retainers)
    events.step_ended.subscribe(ranks.step_ended)
    events.step_ended.subscribe(work.step_ended, peaks.step_ended, history.step_ended, peaks.tell_ledger)
    events.step_ended.subscribe(shapes.step_ended, record.step_ended)
    events.step_ended.subscribe(step_growth.step_ended, settle.step_ended)


@guard.alone
def _look_for_retainers(frame):
    from . import retainers  # seldom: few programs pay for it

    retainers.look(frame)


def _record():
    """The writer of guest/<pid>.json, with what it writes."""
    from . import document, record

    record.start(document.document)
    return record


def _no_torch():
    """The program looked for torch in vain; if that ends it, the supervisor should hear so."""
    import atexit

    def tell():
        from . import ending

        error = getattr(sys, "last_value", None)
        if isinstance(error, ImportError) and error.name == "torch" and state.torch is None:
            state.exception = ending.describe(error)
            _record().write_now()

    atexit.register(guard.guarded(tell))


@guard.guarded
def _on_ipython(module):
    """Cells of a notebook are to be told apart: also those before torch is imported."""
    from . import cell_holders, cell_loops, cells, ending, events, left

    _record()
    if not guard.attempt(cells.attach, module):
        return
    events.cell_began.subscribe(left.cell_began, cell_holders.cell_began, cell_loops.cell_began)
    events.cell_ended.subscribe(ending.cell_ended, left.cell_ended, cell_holders.cell_ended)
    events.window_ends.subscribe(left.window_ends)


def _on_cuda():
    if not state.armed and state.torch is not None and state.hook_error is None:
        state.armed = True  # a forked child that uses the GPU itself
    _cuda_is_there()


@guard.guarded
def _cuda_is_there():
    from . import history, phases, points, ranks, reads, record, torchapi, work

    state.cuda_initialized = True
    state.device_count = torchapi.device_count()
    guard.when_lost("history", history.stop)
    guard.when_lost("reads", reads.detach)
    points.attach(points.INITIALISED)
    guard.attempt(history.start)
    guard.attempt(reads.attach)
    guard.attempt(ranks.attach)
    guard.attempt(work.start)
    if settings.history:
        guard.attempt(phases.start)
    if settings.requests:
        from . import serving

        guard.attempt(serving.start)
    record.write_now()


def _renewed():
    """This process was forked by a fork server to be the program of another run."""

    settings.__init__(os.environ)
    state.armed = True
    state.last_import = None  # the time limit begins here, not when the server had imported
    if settings.gpu == "virtual":
        from . import draws

        draws.renew()
    if state.torch is None:
        return
    from . import ledger, origin, record

    origin.start()
    ledger.attach(settings.run)
    record.write_now()


def _in_child():
    error = state.hook_error
    if settings.host_memory:
        gc.freeze()  # what our own objects in the parent would have its collector copy (doc/design/0036-hosts.md)
    if state.cuda_initialized and state.torch is not None:
        from . import calls, reads

        reads.detach()
        calls.forget()
        if settings.requests:
            from . import serving

            guard.attempt(serving.leave)
    renew()
    state.hook_error = error
