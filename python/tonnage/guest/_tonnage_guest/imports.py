# SPDX-License-Identifier: Apache-2.0
"""Calls us once a watched module has been imported.

A finder at the front of sys.meta_path looks for a watched name with the other finders, and gives the found loader
*instance* an exec_module that runs the real one and then our callback; afterwards the loader is as before. Names that
are not watched cost one dictionary look-up. A module whose import fails is not announced.

While one of the large libraries is imported Python does not look for cycles: it would go through hundreds of thousands of objects several times
and find none. It does so once at the end, where the objects have grown by a quarter, by Python's own rule (gc_long_lived_pending): what is there then decides when it looks next,
and so how long a program's cycles hold memory of the card.

The wrapper's code carries the file name of the import machinery, so that Python leaves its frame out of tracebacks as
it does with its own.
"""

import gc
import sys
import time
from importlib.machinery import ModuleSpec

from .state import state

_watched = {}  # name -> callbacks, in the order of their wishes
_if_missing = {}
_LARGE = ("torch", "torch._dynamo", "torch._inductor.compile_fx", "triton", "sympy", "torchvision", "transformers", "diffusers",
          "datasets", "lightning", "pytorch_lightning", "accelerate", "pandas", "scipy", "sklearn", "matplotlib", "IPython")  # fmt: skip
_objects = [5000]  # of the interpreter, and of what was imported with them
_around = {}  # name -> what is called before and after its code runs


class Finder:
    """The meta path finder. Other finders never see a difference."""

    def find_spec(self, name, path=None, target=None):
        """The real spec of a watched module, its loader armed; None for all other names."""
        if not state.cuda_initialized and state.steps == 0:
            state.last_import = time.monotonic()
        if name not in _watched:
            return None
        spec = _find(self, name, path, target)
        if spec is None and name in _if_missing:
            _if_missing.pop(name)()
        if spec is not None and hasattr(spec.loader, "exec_module"):
            try:
                _arm(spec.loader, name)
            except AttributeError:
                pass  # a loader that takes no attributes: the module is not watched
        return spec

    def invalidate_caches(self):
        """Part of the finder protocol."""


class _Beginning(ModuleSpec):
    """The spec of a module whose import had begun when the hook came: says so when the import machinery says that it is
    over. A failed import leaves no module behind."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = ModuleSpec
            module = sys.modules.get(self.name)
            if module is not None:
                for callback in _watched.pop(self.name, ()):
                    callback(module)


def watch(name, callback):
    """Calls callback(module) after `name` has been imported, at once if it already is. callback must not raise."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        callback(module)
        return
    _watched.setdefault(name, []).append(callback)
    if module is not None and type(spec) is ModuleSpec and "exec_module" not in getattr(spec.loader, "__dict__", {}):
        spec.__class__ = _Beginning  # the hook was started in the middle of this import


def around(name, begin, end):
    """Calls begin() before the code of the module `name` runs, and end() when it has, however that ended. Neither raises."""
    if name not in sys.modules:
        _watched.setdefault(name, [])
        _around[name] = begin, end


def if_missing(name, callback):
    """Calls callback() once when a program looks for the watched module `name` and nobody finds it."""
    _if_missing[name] = callback


def install():
    """Puts the finder in front."""
    for name in _LARGE:
        if name not in sys.modules:
            _watched.setdefault(name, [])
    sys.meta_path.insert(0, Finder())


def _find(own, name, path, target):
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is own or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            return spec
    return None


def _arm(loader, name):
    if "exec_module" in getattr(loader, "__dict__", {}):
        return
    original = loader.exec_module

    begin, end = _around.pop(name, (None, None))

    def exec_module(module):
        collects = name in _LARGE and gc.isenabled()
        if collects:
            gc.disable()
        if begin is not None:
            begin()
        try:
            original(module)
        finally:
            if end is not None:
                end()
            if collects:
                _catch_up()
                gc.enable()
        if module.__name__ == name:
            _done(loader, name, module)

    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    loader.exec_module = exec_module


def _catch_up():
    """What Python would have looked through meanwhile, once."""
    grown = gc.get_count()[0]
    if 4 * grown > _objects[0]:
        gc.collect()
        _objects[0] += grown


def _done(loader, name, module):
    loader.__dict__.pop("exec_module", None)
    for callback in _watched.pop(name, ()):
        callback(module)
