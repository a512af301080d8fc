# SPDX-License-Identifier: Apache-2.0
"""The virtual GPU of this process, called through ctypes. None where there is none (--gpu real)."""

import ctypes
import os

from .state import settings

_loaded = None


def library():
    """libtonnage-vgpu.so, or None."""
    global _loaded
    if _loaded is None and settings.gpu == "virtual" and settings.library:
        path = os.path.join(settings.library, "libtonnage-vgpu.so")
        if os.path.exists(path):
            _loaded = ctypes.CDLL(path)
    return _loaded


def function(name, result, *arguments):
    """A function of the library with its types set, or None."""
    found = getattr(library(), name, None)
    if found is not None:
        found.restype, found.argtypes = result, arguments
    return found
