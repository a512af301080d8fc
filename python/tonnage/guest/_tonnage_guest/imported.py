# SPDX-License-Identifier: Apache-2.0
"""Which installed modules the program has imported, told to the fork server of other trials (forks.py)."""

import os
import sys

from . import origin, record
from .state import state


def tell(folder):
    """Writes what was imported, by its end."""
    lines = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        path = getattr(spec, "origin", None) or ""
        if spec is not None and spec.name == name and not name.startswith("_tonnage") and _is_installed(path):
            lines.append("%s\t%s\n" % (name, path))
    record.write_file(os.path.join(folder, "guest"), "%d.modules" % state.pid, "".join(lines).encode())


def _is_installed(path):
    return path in ("built-in", "frozen") or (path.startswith("/") and not origin.is_users(path))
