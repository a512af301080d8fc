# SPDX-License-Identifier: Apache-2.0
"""The port at which the ranks of a trial meet. Trials run side by side, and a program that names its port itself, or draws it
(the draws of all trials are the same), would find it taken by another trial: the first port at which it wants to meet becomes
the trial's own (src/trials/trial_child.c), in each of its ranks. A launcher's store is where the launcher has opened it.
"""

import functools
import os


def watch_store(owner, name):
    """Attaches to the store that ranks meet in."""
    if not os.environ.get("TONNAGE_PORT", "").isdigit():
        return
    original = getattr(owner, name)
    first = []

    @functools.wraps(original, updated=())
    def store(*args, **kwargs):
        own, arguments = os.environ.get("TONNAGE_PORT", ""), list(args)
        where, key = (kwargs, "port") if "port" in kwargs else (arguments, 1)
        if own.isdigit() and where[key] and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            first.extend([where[key]] if not first else [])
            where[key] = int(own) if where[key] == first[0] else where[key]
        return original(*arguments, **kwargs)

    setattr(owner, name, store)
