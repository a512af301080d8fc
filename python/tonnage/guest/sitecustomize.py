# SPDX-License-Identifier: Apache-2.0
"""Found by Python's `site` because the supervisor put this folder first on PYTHONPATH.

Starts the hook when the process belongs to a run, takes this folder off sys.path again, and hands over to the next
sitecustomize, if there is one, which then stands in sys.modules under its own name. Nothing here may raise on its own
account: what the next sitecustomize raises is its own and goes to `site` as without us.
"""


def _start(folder):
    import os
    import sys

    if os.environ.get("TONNAGE_RUN") and sys._xoptions.get("tonnage") != "off":
        try:
            from _tonnage_guest import boot

            boot.start()
        except Exception as error:
            try:
                sys.stderr.write("tonnage: the hook stopped recording: %s: %s\n" % (type(error).__name__, error))
            except Exception:
                pass
    # The package is imported and finds its own parts by its path; programs get the sys.path that they would have had.
    sys.path[:] = [entry for entry in sys.path if entry != folder]


def _next():
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start(__file__.rpartition("/")[0])
_next()
