# SPDX-License-Identifier: Apache-2.0
"""Starts the hook. A program without torch pays for this file, guard.py, imports.py and state.py, and nothing else.

Order: sitecustomize → start → (torch imported) on_torch → (CUDA initialised) on_cuda. A forked child knows nothing
and owns nothing until it initialises CUDA itself.
"""

import os
import sys

from . import guard, imports
from .methods import watch_network
from .state import renew, state


def start():
    """Called by sitecustomize."""
    state.armed = True
    imports.watch("torch", on_torch)
    imports.if_missing("torch", _no_torch)
    imports.install()
    _hold_back()
    watch_network()
    os.register_at_fork(after_in_child=_in_child)
    if os.environ.get("TONNAGE_FORKS"):
        from . import forks

        forks.serve(_renewed)
    if os.environ.get("TONNAGE_CHANGES"):
        _load_changes(os.environ["TONNAGE_CHANGES"])


def _hold_back():
    """In every process, before anything else is imported: names that are bound early are the replaced ones."""
    from . import held

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

        beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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
    from . import calls, compiling, ending, facts, files, frames, gathered, generated, generation, graph, habits, history
    from . import holds, init, ledger, peaks, phases, record, steps, torchapi, values, zero
    from .state import settings

    state.torch = torch
    guard.on_disarm.append(record.write_now)
    frames.start()
    ledger.attach(settings.run)
    guard.attempt(ending.install)
    guard.attempt(files.install)
    guard.attempt(calls.install, torch)
    if torchapi.is_cuda_build():
        torchapi.queue_at_cuda_init(_on_cuda)
        guard.attempt(peaks.wrap_resets)
        guard.attempt(history.install)
        if history.wanted():
            guard.attempt(phases.install, torch)
            guard.attempt(holds.install)
            guard.attempt(gathered.install)
            guard.attempt(zero.install)
            guard.attempt(graph.install)
            guard.attempt(habits.install, torch)
            guard.attempt(facts.install, torch)
    guard.attempt(steps.on_torch, torch)
    guard.attempt(compiling.install)
    guard.attempt(generated.install)
    if settings.init == "skip" and settings.gpu == "virtual":
        guard.attempt(init.install, torch)
    if settings.gpu == "virtual":
        guard.attempt(generation.install)
        guard.attempt(values.install, torch)
    record.write_now()


def _no_torch():
    """The program looked for torch in vain; if that ends it, the supervisor should hear so."""
    import atexit

    def tell():
        from . import ending, record

        error = getattr(sys, "last_value", None)
        if isinstance(error, ImportError) and error.name == "torch" and state.torch is None:
            state.exception = ending.describe(error)
            record.write_now()

    atexit.register(guard.guarded(tell))


def _on_cuda():
    if not state.armed and state.torch is not None and state.hook_error is None:
        state.armed = True  # a forked child that uses the GPU itself
    _cuda_is_there()


@guard.guarded
def _cuda_is_there():
    from . import history, oom, phases, ranks, reads, record, torchapi, work

    state.cuda_initialized = True
    state.device_count = torchapi.device_count()
    guard.when_lost("history", history.stop)
    guard.when_lost("reads", reads.detach)
    guard.attempt(oom.attach)
    guard.attempt(history.start)
    guard.attempt(reads.attach)
    guard.attempt(ranks.attach)
    guard.attempt(work.start)
    if history.wanted():
        guard.attempt(phases.start)
    record.write_now()


def _renewed():
    """This process was forked by a fork server to be the program of another run."""
    from .state import settings

    settings.__init__(os.environ)
    state.armed = True
    if state.torch is None:
        return
    from . import frames, ledger, record

    frames.start()
    ledger.attach(settings.run)
    record.write_now()


def _in_child():
    error = state.hook_error
    if state.cuda_initialized and state.torch is not None:
        from . import calls, reads

        reads.detach()
        calls.forget()
    renew()
    state.hook_error = error
